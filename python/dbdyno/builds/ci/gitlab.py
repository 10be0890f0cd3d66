"""Job of GitLab CI, to be included in `.gitlab-ci.yml`."""

from __future__ import annotations

from dbdyno.builds.ci.request import BASE_FOLDER, VERDICT, WorkflowRequest, block

_COMPARE = """\
# Written by `dbdyno ci gitlab`; change it as you like. A comment needs the project variable PERFORMANCE_TOKEN: a
# token with the scope api.
performance:
  image: python:3.12
  timeout: 1 hour
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"
  script:
    - |
{install}
    - |
{checkout}
{build}    - |
{compare}
  after_script:
    - |
{comment}
  artifacts:
    when: always
    expire_in: 30 days
    paths:
      - {verdict}
      - verdict.xml
      - runs/
    reports:
      junit: verdict.xml
"""
_RECORD = """\

performance-record:
  image: python:3.12
  timeout: 1 hour
  rules:
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  cache:
    key: {results}
    paths:
      - {results}/
  script:
    - |
{install}
{build}    - |
{record}
    - |
{push}
  artifacts:
    paths:
      - {results}/
"""
_COMMENT = f"""\
[ -f {VERDICT} ] || exit 0
dbdyno compare last -o verdict.xml || true
[ -n "$PERFORMANCE_TOKEN" ] || exit 0
curl --fail --silent --show-error --output /dev/null --header "PRIVATE-TOKEN: $PERFORMANCE_TOKEN" \\
  --data-urlencode "body@{VERDICT}" \\
  "$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
"""


def workflow(request: WorkflowRequest) -> str:
    """Return the text of the job."""
    request.check()
    install = block(request.install(), 6)
    builds = [f"(cd {BASE_FOLDER} && {request.build})", f"({request.build})"] if request.build else []
    text = _COMPARE.format(
        install=install,
        checkout=block(f'git worktree add --detach {BASE_FOLDER} "$CI_MERGE_REQUEST_DIFF_BASE_SHA"', 6),
        build=_steps(builds),
        compare=block(request.compare(), 6),
        comment=block(_COMMENT, 6),
        verdict=VERDICT,
    )
    if request.results is None:
        return text
    place = request.results
    return text + _RECORD.format(
        results=place,
        install=install,
        build=_steps(builds[1:]),
        record=block(request.record(), 6),
        push=block(f"dbdyno results push {place}/\n{request.trend(f'{place}/')}", 6),
    )


def _steps(commands: list[str]) -> str:
    return "".join(f"    - |\n{block(command, 6)}\n" for command in commands)
