"""Workflow of GitHub Actions."""

from __future__ import annotations

from dbdyno.builds.ci.request import BASE_FOLDER, VERDICT, WorkflowRequest, block

NAME = "performance"

_HEAD = """\
# Written by `dbdyno ci github`; change it as you like.
name: {name}
on:
  pull_request:
{push}permissions:
  contents: read
concurrency:
  group: {name}-${{{{ github.ref }}}}
  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}
jobs:
"""
_INSTALL = """\
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install dbdyno
        run: |
{install}
"""
_COMPARE = """\
  compare:
    if: github.event_name == 'pull_request'
    runs-on: ubuntu-latest
    timeout-minutes: 60
    permissions:
      contents: read
      pull-requests: write
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
{install}      - name: Check the base out
        env:
          BASE: ${{{{ github.event.pull_request.base.sha }}}}
        run: |
{checkout}
{build}      - name: Run base and change in turns
        run: |
{compare}
      - name: Comment
        if: always()
        env:
          GH_TOKEN: ${{{{ github.token }}}}
          NUMBER: ${{{{ github.event.number }}}}
        run: |
{comment}
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: {name}
          path: |
            {verdict}
            runs/
          if-no-files-found: ignore
"""
_RECORD = """\
  record:
    if: github.event_name == 'push'
    runs-on: ubuntu-latest
    timeout-minutes: 60
    permissions:
      contents: write
    steps:
      - uses: actions/checkout@v4
{install}{build}      - name: Run
        run: |
{record}
      - name: Keep the result
        run: |
{push}
      - name: Compare with the results before
        run: |
{trend}
"""
_PUSH = """\
  push:
    branches: [main]
"""
_COMMENT = f"""\
[ -f {VERDICT} ] || exit 0
gh pr comment "$NUMBER" --edit-last --body-file {VERDICT} ||
  gh pr comment "$NUMBER" --body-file {VERDICT} ||
  echo "the comment could not be written: a pull request from a fork has no right to" >> "$GITHUB_STEP_SUMMARY"
cat {VERDICT} >> "$GITHUB_STEP_SUMMARY"
"""


def workflow(request: WorkflowRequest) -> str:
    """Return the text of the workflow."""
    request.check()
    install = _INSTALL.format(install=block(request.install(), 10))
    text = _HEAD.format(name=NAME, push=_PUSH if request.results else "") + _COMPARE.format(
        name=NAME,
        install=install,
        checkout=block(f'git worktree add --detach {BASE_FOLDER} "$BASE"', 10),
        build=_build("Build the base", request.build, BASE_FOLDER) + _build("Build the change", request.build, ""),
        compare=block(request.compare(), 10),
        comment=block(_COMMENT, 10),
        verdict=VERDICT,
    )
    if request.results is None:
        return text
    place = f"branch:{request.results}"
    return (
        text
        + "\n"
        + _RECORD.format(
            install=install,
            build=_build("Build", request.build, ""),
            record=block(request.record(), 10),
            push=block(f"dbdyno results push {place} --remote origin", 10),
            trend=block(f'{request.trend(place)} >> "$GITHUB_STEP_SUMMARY"', 10),
        )
    )


def _build(name: str, command: str, folder: str) -> str:
    """Return the build step; empty if there is nothing to build."""
    if not command:
        return ""
    where = f"        working-directory: {folder}\n" if folder else ""
    return f"      - name: {name}\n{where}        run: |\n{block(command, 10)}\n"
