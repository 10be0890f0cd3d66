# The clients in R: Rscript r_client.R WAY PLACE. They read the job, run its slices, write the records
# (docs/reference/client-protocol.md); each query becomes a data frame.
#
# rpostgresql: DBI with RPostgreSQL. jdbc-rows: pgjdbc by way of rJava, a call for each value. jdbc-columns: pgjdbc, a
# column at a time. Values are written into the text. R has one thread, so sessions take turns. RPostgreSQL tells no
# SQLSTATE: its errors are XX000.

suppressPackageStartupMessages(library(jsonlite))
arguments <- commandArgs(trailingOnly = TRUE)
way <- arguments[1]
place <- arguments[2]
invisible(dyn.load(file.path(place, "r", "r_clock.so")))
now <- function() .Call("dyno_now")
out <- file("/dev/stdout", "wb", raw = TRUE)
sink(stderr()) # stdout is for the stream alone

HELLO <- 1; READY <- 2; CLOSED <- 3; TRANSACTION <- 4; STATEMENT <- 5; END <- 6; SAID <- 7; FAILED <- 8
FLUSH_NS <- 1e9

signed <- function(x) as.integer(ifelse(x >= 2^31, x - 2^32, x))
low <- function(x) signed(x %% 2^32)
high <- function(x) signed((x %/% 2^32) %% 2^32)

# Records as integers of 4 bytes, 12 of them each.
record <- function(kind, session = 0, slice = 0, statement = 0, started = 0, elapsed = 0, rows = -1, code = "", length = 0) {
  letters <- c(utf8ToInt(code), rep(0, 5))[1:5]
  c(
    low(kind + 219 * 256 + session * 65536), low(slice), low(statement), low(length), low(started), high(started),
    low(elapsed), high(elapsed), low(rows), high(rows), low(sum(letters[1:4] * 256^(0:3))), letters[5]
  )
}

write_records <- function(rows) {
  writeBin(as.integer(unlist(rows)), out, size = 4, endian = "little")
  flush(out)
}

write_text <- function(kind, ..., text = "") {
  bytes <- charToRaw(enc2utf8(text))
  bytes <- bytes[seq_len(min(length(bytes), 60000))]
  write_records(list(record(kind, ..., length = length(bytes))))
  writeBin(c(bytes, raw(-length(bytes) %% 48)), out)
  flush(out)
}

literal <- function(value) {
  if (is.null(value)) return("null")
  if (is.character(value)) return(paste0("'", gsub("'", "''", value, fixed = TRUE), "'"))
  if (is.logical(value)) return(if (value) "true" else "false")
  format(value, digits = 17, scientific = FALSE)
}

written <- function(statement, values) {
  pieces <- unlist(statement$pieces)
  texts <- c(vapply(values, literal, ""), "")
  paste0(pieces, texts[seq_along(pieces)], collapse = "")
}

if (way == "rpostgresql") {
  suppressPackageStartupMessages({library(DBI); library(RPostgreSQL)})
  about <- paste0("RPostgreSQL ", packageVersion("RPostgreSQL"))
  variable <- function(name) Sys.getenv(name)
  # libpq takes name and options of the session from its own variables.
  connect <- function() {
    dbConnect(dbDriver("PostgreSQL"), host = variable("PGHOST"), port = variable("PGPORT"), user = variable("PGUSER"),
              password = variable("PGPASSWORD"), dbname = variable("PGDATABASE"))
  }
  # It warns of a failed query and returns nothing.
  query <- function(session, sql) {
    frame <- suppressWarnings(dbGetQuery(session, sql))
    if (is.null(frame)) stop(dbGetException(session)$errorMsg)
    nrow(frame)
  }
  change <- function(session, sql) {
    result <- dbSendQuery(session, sql)
    count <- dbGetRowsAffected(result)
    dbClearResult(result)
    max(0, count)
  }
  state_of <- function(error) "XX000"
  words_of <- function(error) conditionMessage(error)
  is_closed <- function(session) inherits(try(dbGetInfo(session), silent = TRUE), "try-error")
  disconnect <- function(session) invisible(dbDisconnect(session))
} else {
  suppressPackageStartupMessages(library(rJava))
  jars <- list.files(file.path(place, "java"), pattern = "[.]jar$", full.names = TRUE)
  .jinit(classpath = c(file.path(place, "java"), jars), parameters = "-XX:+UseSerialGC")
  about <- paste0("rJava ", packageVersion("rJava"), " over pgjdbc, ", sub("jdbc-", "by ", way))
  connect <- function() .jcall("RJdbc", "Ljava/sql/Connection;", "connect")
  statement_of <- function(session) .jcall(session, "Ljava/sql/Statement;", "createStatement")
  by_rows <- function(result) {
    numbers <- .jcall("RJdbc", "[Z", "numbers", .jcast(result, "java/sql/ResultSet"))
    frame <- lapply(numbers, function(number) list())
    count <- 0L
    while (.jcall(result, "Z", "next")) {
      count <- count + 1L
      for (at in seq_along(numbers)) {
        frame[[at]][[count]] <- if (numbers[at]) .jcall(result, "D", "getDouble", at) else .jcall(result, "S", "getString", at)
      }
    }
    frame <- lapply(seq_along(numbers), function(at) {
      if (numbers[at]) as.numeric(unlist(frame[[at]])) else as.character(unlist(frame[[at]]))
    })
    as.data.frame(frame, col.names = paste0("c", seq_along(numbers)))
  }
  by_columns <- function(result) {
    columns <- .jcall("RJdbc", "[Ljava/lang/Object;", "columns", .jcast(result, "java/sql/ResultSet"))
    as.data.frame(lapply(columns, .jevalArray), col.names = paste0("c", seq_along(columns)))
  }
  read_frame <- if (way == "jdbc-rows") by_rows else by_columns
  query <- function(session, sql) {
    statement <- statement_of(session)
    on.exit(.jcall(statement, "V", "close"))
    nrow(read_frame(.jcall(statement, "Ljava/sql/ResultSet;", "executeQuery", sql)))
  }
  change <- function(session, sql) {
    statement <- statement_of(session)
    on.exit(.jcall(statement, "V", "close"))
    .jcall(statement, "Z", "execute", sql)
    max(0, .jcall(statement, "I", "getUpdateCount"))
  }
  state_of <- function(error) {
    state <- if (is.null(error$jobj)) NULL else try(.jcall(error$jobj, "S", "getSQLState", check = FALSE), silent = TRUE)
    if (is.character(state) && length(state) == 1 && nchar(state) == 5) state else "XX000"
  }
  words_of <- function(error) conditionMessage(error)
  is_closed <- function(session) .jcall(session, "Z", "isClosed")
  disconnect <- function(session) .jcall(session, "V", "close")
}

job <- NULL
sessions <- list()
said <- character()
lost <- 0

open_session <- function() {
  session <- connect()
  before <- unlist(job$session_sql)
  if (!is.null(job$statement_timeout_ms)) before <- c(before, paste("set statement_timeout =", job$statement_timeout_ms))
  for (sql in before) change(session, sql)
  session
}

recover <- function(number) {
  if (!is_closed(sessions[[number]]$connection)) {
    done <- try(change(sessions[[number]]$connection, "rollback"), silent = TRUE)
    if (!inherits(done, "try-error")) return(invisible())
  }
  deadline <- now() + 10 * FLUSH_NS
  repeat {
    again <- try(open_session(), silent = TRUE)
    if (!inherits(again, "try-error")) break
    if (now() > deadline) stop("the connection is lost and could not be made again")
    Sys.sleep(0.1)
  }
  sessions[[number]]$connection <<- again
  lost <<- lost + 1
}

# One transaction: its records.
transaction <- function(number, slice, began) {
  own <- sessions[[number]]
  sessions[[number]]$at <<- own$at %% length(own$drawn) + 1
  drawn <- own$drawn[[own$at]]
  script <- drawn[[1]]
  single <- job$scripts[[script + 1]]$single
  rows <- list()
  at <- began
  got <- -1
  code <- ""
  for (step in drawn[[2]]) {
    if (is.null(step[[1]])) {
      Sys.sleep(step[[2]] / 1e6)
      at <- now()
      next
    }
    statement <- job$statements[[step[[1]] + 1]]
    begun <- at
    failure <- NULL
    got <- tryCatch({
      sql <- written(statement, step[-1])
      if (statement$query) query(own$connection, sql) else change(own$connection, sql)
    }, error = function(error) {
      failure <<- error
      -1
    })
    at <- now()
    if (!is.null(failure)) {
      code <- if (is_closed(own$connection)) "08006" else state_of(failure)
      key <- paste(step[[1]], code)
      if (!key %in% said) {
        said <<- c(said, key)
        write_text(SAID, number - 1, slice, step[[1]], at, 0, code = code, text = words_of(failure))
      }
    }
    if (!single) rows[[length(rows) + 1]] <- record(STATEMENT, number - 1, slice, step[[1]], begun, at - begun, got, code)
    if (code != "") break
  }
  rows[[length(rows) + 1]] <- record(TRANSACTION, number - 1, slice, script, began, at - began, if (single) got else -1, code)
  if (code != "") {
    recover(number)
    at <- now()
  }
  list(rows = rows, at = at)
}

# One slice; sessions take turns.
run_slice <- function(message) {
  began <- now()
  due <- if (is.null(message$due_ns)) NULL else unlist(message$due_ns)
  open_loop <- "due_ns" %in% names(message)
  count <- 0
  rows <- list()
  flushed <- at <- now()
  repeat {
    if (open_loop) {
      if (count >= length(due) || now() >= message$give_up_ns) break
      while ((at <- now()) < due[count + 1]) Sys.sleep((due[count + 1] - at) / 1e9)
    } else if (is.null(message$transactions)) {
      if (at >= began + message$length_ns) break
    } else if (count >= message$transactions) {
      break
    }
    done <- transaction(count %% length(sessions) + 1, message$slice, at)
    rows[[length(rows) + 1]] <- done$rows
    at <- done$at
    count <- count + 1
    if (at - flushed > FLUSH_NS) {
      write_records(rows)
      rows <- list()
      flushed <- at <- now()
    }
  }
  rows[[length(rows) + 1]] <- record(END, 0, message$slice, lost, began, now() - began, count)
  lost <<- 0
  write_records(rows)
}

close_all <- function() {
  for (session in sessions) disconnect(session$connection)
  sessions <<- list()
}

answer <- function(message) {
  began <- now()
  if (message$do == "job") {
    job <<- message
    sessions <<- lapply(seq_len(message$sessions), function(number) list(connection = open_session(), drawn = list(), at = 1))
    write_text(READY, started = began, elapsed = now() - began)
  } else if (message$do == "draw") {
    for (number in seq_along(sessions)) {
      sessions[[number]]$drawn <<- message$transactions[[number]]
      sessions[[number]]$at <<- 1
    }
  } else if (message$do == "slice") {
    run_slice(message)
  } else if (message$do == "close") {
    close_all()
    write_text(CLOSED, started = began, elapsed = now() - began)
  }
}

write_text(HELLO, statement = 1, started = now(), text = paste0(about, ", R ", getRversion()))
input <- file("stdin", "r")
tryCatch({
  while (length(line <- readLines(input, 1)) > 0) answer(fromJSON(line, simplifyVector = FALSE))
  close_all()
}, error = function(error) {
  write_text(FAILED, started = now(), text = conditionMessage(error))
  quit(status = 1)
})
quit(status = 0)
