// The client JDBC: reads the job, runs its slices, writes the records (docs/reference/client-protocol.md). The drivers
// are pgjdbc and MariaDB Connector/J (JdbcDriver.java).
//
// `prepared`: the server keeps the statement; `binds`: values apart from the text, parsed each time; `literals`: a
// Statement with the values in its text. A fetch size needs autocommit off, so a query has a transaction of its own where
// the script has none. Every column of every row is read. Whole numbers are bound as 64 bits.

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class Jdbc {
    static final int HELLO = 1, READY = 2, CLOSED = 3, TRANSACTION = 4, STATEMENT = 5, END = 6, SAID = 7, FAILED = 8;
    static final int LENGTH = 48, VERSION = 1, ROWS_HELD = 1 << 14;
    static final long FLUSH_NS = 1_000_000_000L;
    static final OutputStream OUT = new FileOutputStream(FileDescriptor.out);

    /** What a statement is: its text with question marks, its pieces, and whether a cursor may fetch it. */
    record Sql(String text, List<String> pieces, boolean query, String kind) {}

    /** What the first line says. */
    record Job(int sessions, String mode, int fetchSize, List<Sql> statements, List<Boolean> single, List<String> before) {}

    /** One transaction that was drawn. */
    record Drawn(int script, int[] statements, Object[][] values) {}

    static Job job;
    static List<Session> sessions = new ArrayList<>();
    static ExecutorService pool;
    static int lost;
    static final JdbcDriver DRIVER = JdbcDriver.chosen();
    /** Due times of an open loop, which the sessions share; null in a closed loop. */
    static long[] due;
    static long giveUp;
    static final AtomicInteger NEXT_DUE = new AtomicInteger();
    static final Set<String> SAID_ALREADY = ConcurrentHashMap.newKeySet();

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // stdout is for the stream alone
        String about = DRIVER.about() + ", Java " + Runtime.version().feature();
        text(HELLO, 0, 0, VERSION, System.nanoTime(), 0, "", 0, about);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                answer(new Json(line).object());
            }
            close();
            System.exit(0);
        } catch (Exception error) {
            String code = error instanceof SQLException sql && sql.getSQLState() != null ? sql.getSQLState() : "";
            text(FAILED, 0, 0, 0, System.nanoTime(), 0, code, 0, error.toString());
            Runtime.getRuntime().halt(1);
        }
    }

    static void answer(Map<String, Object> message) throws Exception {
        long began = System.nanoTime();
        switch ((String) message.get("do")) {
            case "job" -> {
                job = job(message);
                for (int number = 0; number < job.sessions(); number++) sessions.add(new Session(number));
                pool = Executors.newFixedThreadPool(Math.max(1, job.sessions() - 1), Jdbc::daemon);
                text(READY, 0, 0, 0, began, System.nanoTime() - began, "", 0, "");
            }
            case "draw" -> {
                List<?> all = (List<?>) message.get("transactions");
                for (int number = 0; number < sessions.size(); number++) sessions.get(number).draw((List<?>) all.get(number));
            }
            case "slice" -> slice(message);
            case "close" -> {
                close();
                text(CLOSED, 0, 0, 0, began, System.nanoTime() - began, "", 0, "");
            }
            default -> {}
        }
    }

    static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    @SuppressWarnings("unchecked")
    static Job job(Map<String, Object> message) {
        List<Sql> statements = new ArrayList<>();
        for (Object one : (List<Object>) message.get("statements")) {
            Map<String, Object> own = (Map<String, Object>) one;
            List<String> pieces = (List<String>) own.get("pieces");
            List<String> marked = new ArrayList<>();
            for (String piece : pieces) marked.add(marked(piece));
            statements.add(new Sql(String.join("?", marked), pieces, (Boolean) own.get("query"), (String) own.get("kind")));
        }
        List<Boolean> single = new ArrayList<>();
        for (Object one : (List<Object>) message.get("scripts")) single.add((Boolean) ((Map<String, Object>) one).get("single"));
        List<String> before = new ArrayList<>((List<String>) message.get("session_sql"));
        if (message.get("statement_timeout_ms") != null) before.add(DRIVER.timeout((Long) message.get("statement_timeout_ms")));
        Object size = message.get("fetch_size");
        return new Job(whole(message.get("sessions")), (String) message.get("mode"), size == null ? 0 : whole(size), statements, single, before);
    }

    /** A question mark of the SQL itself (an operator) is written twice; inside quotes pgjdbc leaves it alone. */
    static String marked(String piece) {
        Matcher found = Pattern.compile("'[^']*'|\"[^\"]*\"|(\\$\\w*\\$).*?\\1|--[^\n]*|/\\*.*?\\*/|\\?", Pattern.DOTALL).matcher(piece);
        return found.replaceAll(part -> part.group().equals("?") ? "??" : Matcher.quoteReplacement(part.group()));
    }

    static int whole(Object number) {
        return (int) (long) (Long) number;
    }

    static void close() throws SQLException {
        for (Session session : sessions) session.connection.close();
        sessions.clear();
        if (pool != null) pool.shutdown();
    }

    static void slice(Map<String, Object> message) throws Exception {
        long began = System.nanoTime();
        int number = whole(message.get("slice"));
        Object times = message.get("due_ns"), length = message.get("length_ns");
        due = times == null ? null : ((List<?>) times).stream().mapToLong(time -> (Long) time).toArray();
        giveUp = times == null ? 0 : (Long) message.get("give_up_ns");
        NEXT_DUE.set(0);
        Object count = due == null ? message.get("transactions") : null;
        long until = count == null && length != null ? began + (Long) length : 0, done = 0;
        List<Future<Long>> others = new ArrayList<>();
        for (Session session : sessions) {
            long share = count == null ? -1 : (Long) count / job.sessions() + (session.number < (Long) count % job.sessions() ? 1 : 0);
            Callable<Long> turn = () -> session.turn(number, until, share);
            if (session.number > 0) others.add(pool.submit(turn));
        }
        long first = count == null ? -1 : (Long) count / job.sessions() + ((Long) count % job.sessions() > 0 ? 1 : 0);
        done += sessions.get(0).turn(number, until, first);
        for (Future<Long> other : others) done += other.get();
        int again;
        synchronized (Jdbc.class) {
            again = lost;
            lost = 0;
        }
        ByteBuffer end = head(ByteBuffer.allocate(LENGTH), END, 0, number, again, 0, began, System.nanoTime() - began, done, "", 0);
        flush(end);
    }

    static ByteBuffer head(
            ByteBuffer to, int kind, int session, int slice, int statement, int length, long started, long elapsed, long rows, String code, int vendor) {
        to.order(ByteOrder.LITTLE_ENDIAN).put((byte) kind).put((byte) 0xDB).putShort((short) session).putInt(slice);
        to.putInt(statement).putInt(length).putLong(started).putLong(elapsed).putLong(rows);
        byte[] letters = code.getBytes(StandardCharsets.US_ASCII);
        for (int at = 0; at < 6; at++) to.put(at < Math.min(5, letters.length) ? letters[at] : 0);
        return to.putShort((short) vendor);
    }

    static void text(int kind, int session, int slice, int statement, long started, long elapsed, String code, int vendor, String said)
            throws java.io.IOException {
        byte[] bytes = said.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(bytes.length, 60_000), padded = (length + LENGTH - 1) / LENGTH * LENGTH;
        ByteBuffer to = head(ByteBuffer.allocate(LENGTH + padded), kind, session, slice, statement, length, started, elapsed, -1, code, vendor);
        to.put(bytes, 0, length).position(LENGTH + padded);
        flush(to);
    }

    static void flush(ByteBuffer rows) throws java.io.IOException {
        synchronized (OUT) {
            OUT.write(rows.array(), 0, rows.position());
            OUT.flush();
        }
        rows.clear();
    }

    /** A connection at work. */
    static final class Session {
        final int number;
        final ByteBuffer rows = ByteBuffer.allocate(LENGTH * ROWS_HELD);
        Connection connection;
        Statement plain;
        PreparedStatement[] prepared;
        Drawn[] drawn = {};
        int at;

        Session(int number) throws SQLException {
            this.number = number;
            open();
        }

        void open() throws SQLException {
            connection = DRIVER.connect(job.mode(), job.fetchSize());
            plain = connection.createStatement();
            for (String sql : job.before()) plain.execute(sql);
            // A fetch size is in effect inside a transaction only; the script's own begin and end are ours to carry out.
            if (job.fetchSize() > 0) plain.setFetchSize(job.fetchSize());
            prepared = new PreparedStatement[job.statements().size()];
            boolean kept = !job.mode().equals("literals") && !DRIVER.preparesAnew(job.mode());
            for (int at = 0; at < prepared.length && kept; at++) {
                prepared[at] = connection.prepareStatement(job.statements().get(at).text());
                if (job.fetchSize() > 0) prepared[at].setFetchSize(job.fetchSize());
            }
        }

        void draw(List<?> transactions) {
            drawn = new Drawn[transactions.size()];
            at = 0;
            for (int one = 0; one < drawn.length; one++) {
                List<?> given = (List<?>) transactions.get(one), steps = (List<?>) given.get(1);
                int[] statements = new int[steps.size()];
                Object[][] values = new Object[steps.size()][];
                for (int step = 0; step < statements.length; step++) {
                    List<?> own = (List<?>) steps.get(step);
                    statements[step] = own.get(0) == null ? -1 : whole(own.get(0));
                    values[step] = own.subList(1, own.size()).toArray();
                }
                drawn[one] = new Drawn(whole(given.get(0)), statements, values);
            }
        }

        long turn(int slice, long until, long most) throws Exception {
            long now = System.nanoTime(), flushed = now, count = 0;
            while ((now = begins(now, until, most, count)) >= 0) {
                Drawn one = drawn[at];
                at = (at + 1) % drawn.length;
                count++;
                if (rows.remaining() < LENGTH * (one.statements().length + 1)) flush(rows);
                now = transaction(slice, one, now);
                if (now - flushed > FLUSH_NS) {
                    flush(rows);
                    now = flushed = System.nanoTime();
                }
            }
            flush(rows);
            return count;
        }

        /** When the next transaction begins: at once in a closed loop, when it is due in an open one; -1 at the end. */
        static long begins(long now, long until, long most, long count) {
            if (due == null) return (most < 0 ? now < until : count < most) ? now : -1;
            int next = NEXT_DUE.getAndIncrement();
            now = System.nanoTime();
            if (next >= due.length || now >= giveUp) return -1;
            for (; now < due[next]; now = System.nanoTime()) LockSupport.parkNanos(due[next] - now);
            return now;
        }

        long transaction(int slice, Drawn one, long began) throws Exception {
            boolean single = job.single().get(one.script());
            long now = began, got = -1;
            String code = "";
            int vendor = 0;
            for (int step = 0; step < one.statements().length && code.isEmpty(); step++) {
                int statement = one.statements()[step];
                if (statement < 0) {
                    Thread.sleep((Long) one.values()[step][0] / 1000, (int) ((Long) one.values()[step][0] % 1000 * 1000));
                    now = System.nanoTime();
                    continue;
                }
                long begun = now;
                try {
                    got = run(job.statements().get(statement), statement, one.values()[step]);
                    now = System.nanoTime();
                } catch (SQLException error) {
                    now = System.nanoTime();
                    got = -1;
                    code = error.getSQLState() == null ? "XX000" : error.getSQLState();
                    vendor = DRIVER.vendor(error);
                    if (SAID_ALREADY.add(statement + code + vendor)) {
                        text(SAID, number, slice, statement, now, 0, code, vendor, DRIVER.said(error));
                    }
                }
                if (!single) head(rows, STATEMENT, number, slice, statement, 0, begun, now - begun, got, code, vendor);
            }
            head(rows, TRANSACTION, number, slice, one.script(), 0, began, now - began, single ? got : -1, code, vendor);
            if (!code.isEmpty()) {
                recover();
                now = System.nanoTime();
            }
            return now;
        }

        long run(Sql sql, int statement, Object[] values) throws SQLException {
            boolean fetched = job.fetchSize() > 0 && sql.query(), own = fetched && connection.getAutoCommit();
            // pgjdbc sends begin by itself where autocommit is off: the script's own would be a second one.
            if (job.fetchSize() > 0 && sql.kind().equals("begin")) {
                connection.setAutoCommit(false);
                return 0;
            }
            if (job.fetchSize() > 0 && (sql.kind().equals("commit") || sql.kind().equals("rollback"))) {
                if (sql.kind().equals("commit")) connection.commit();
                else connection.rollback();
                connection.setAutoCommit(true);
                return 0;
            }
            if (own) connection.setAutoCommit(false);
            long got = taken(sql, statement, values);
            if (own) {
                connection.commit();
                connection.setAutoCommit(true);
            }
            return got;
        }

        long taken(Sql sql, int statement, Object[] values) throws SQLException {
            if (DRIVER.preparesAnew(job.mode())) {
                try (PreparedStatement once = connection.prepareStatement(sql.text())) {
                    return taken(once, sql, values);
                }
            }
            return taken(prepared[statement], sql, values);
        }

        long taken(PreparedStatement ready, Sql sql, Object[] values) throws SQLException {
            boolean query;
            if (ready == null) {
                query = plain.execute(literal(sql, values));
            } else {
                for (int place = 0; place < values.length; place++) bind(ready, place + 1, values[place]);
                query = ready.execute();
            }
            Statement done = ready == null ? plain : ready;
            if (!query) return Math.max(0, done.getUpdateCount());
            long count = 0;
            try (ResultSet result = done.getResultSet()) {
                int columns = result.getMetaData().getColumnCount();
                while (result.next()) {
                    count++;
                    for (int column = 1; column <= columns; column++) result.getObject(column);
                }
            }
            return count;
        }

        static void bind(PreparedStatement ready, int place, Object value) throws SQLException {
            if (value == null) ready.setNull(place, Types.NULL);
            else if (value instanceof Long number) ready.setLong(place, number);
            else if (value instanceof Double number) ready.setDouble(place, number);
            else if (value instanceof Boolean truth) ready.setBoolean(place, truth);
            else ready.setString(place, (String) value);
        }

        static String literal(Sql sql, Object[] values) {
            StringBuilder text = new StringBuilder(sql.pieces().get(0));
            for (int place = 0; place < values.length; place++) {
                Object value = values[place];
                text.append(value instanceof String word ? DRIVER.quoted(word) : value);
                text.append(sql.pieces().get(place + 1));
            }
            return text.toString();
        }

        void recover() throws Exception {
            if (!connection.isClosed()) {
                if (!connection.getAutoCommit()) {
                    connection.rollback();
                    connection.setAutoCommit(true);
                } else {
                    plain.execute("rollback");
                }
                return;
            }
            for (long deadline = System.nanoTime() + 10_000_000_000L; ; Thread.sleep(100)) {
                try {
                    open();
                    synchronized (Jdbc.class) {
                        lost++;
                    }
                    return;
                } catch (SQLException error) {
                    if (System.nanoTime() > deadline) throw error;
                }
            }
        }
    }

    private Jdbc() {}
}
