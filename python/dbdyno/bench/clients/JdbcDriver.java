// What differs between the drivers of the client JDBC: how it connects, and what an error of its server says.

import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Properties;
import java.util.regex.Pattern;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** A driver; DBDYNO_DSN says by its scheme which. */
interface JdbcDriver {
    String about() throws SQLException;

    Connection connect(String mode, int fetchSize) throws SQLException;

    /** The message alone, and behind zero bytes the fields that the server sent beside it. */
    String said(SQLException error);

    /** The server's own number of an error; 0 where it has none. */
    int vendor(SQLException error);

    /** The limit of statements as SQL. */
    String timeout(long millis);

    /** Text as a literal of SQL. */
    default String quoted(String word) {
        return "'" + word.replace("'", "''") + "'";
    }

    /** Whether a statement is to be prepared again for each execution, so that nothing is kept. */
    boolean preparesAnew(String mode);

    static JdbcDriver chosen() {
        return variable("DBDYNO_DSN").startsWith("mariadb:") ? new MariaDb() : new Postgres();
    }

    static String variable(String name) {
        String value = System.getenv(name);
        return value == null ? "" : value;
    }

    static void put(Properties own, String key, String variable) {
        if (!variable(variable).isEmpty()) own.setProperty(key, variable(variable));
    }

    /** pgjdbc. `prepared`: prepareThreshold=1; `binds`: prepareThreshold=0; `literals`: a Statement. */
    final class Postgres implements JdbcDriver {
        @Override
        public String about() {
            return "pgjdbc " + org.postgresql.util.DriverInfo.DRIVER_VERSION;
        }

        @Override
        public Connection connect(String mode, int fetchSize) throws SQLException {
            Properties own = new Properties();
            put(own, "user", "PGUSER");
            put(own, "password", "PGPASSWORD");
            put(own, "ApplicationName", "PGAPPNAME");
            put(own, "options", "PGOPTIONS");
            put(own, "sslmode", "PGSSLMODE");
            put(own, "sslrootcert", "PGSSLROOTCERT");
            own.setProperty("prepareThreshold", mode.equals("prepared") ? "1" : "0");
            own.setProperty("preparedStatementCacheQueries", "0");
            if (mode.equals("literals")) own.setProperty("preferQueryMode", fetchSize > 0 ? "extended" : "simple");
            String host = variable("PGHOST");
            String place = host.contains(":") ? "[" + host + "]" : host;
            return DriverManager.getConnection("jdbc:postgresql://" + place + ":" + variable("PGPORT") + "/" + variable("PGDATABASE"), own);
        }

        @Override
        public String said(SQLException error) {
            ServerErrorMessage from = error instanceof PSQLException own ? own.getServerErrorMessage() : null;
            if (from == null) return String.valueOf(error.getMessage());
            StringBuilder text = new StringBuilder(String.valueOf(from.getMessage()));
            String[] fields = {"R", from.getRoutine(), "s", from.getSchema(), "t", from.getTable(), "c", from.getColumn(), "d", from.getDatatype(), "n", from.getConstraint()};
            for (int at = 0; at < fields.length; at += 2) {
                if (fields[at + 1] != null) text.append('\0').append(fields[at]).append(fields[at + 1]);
            }
            return text.toString();
        }

        @Override
        public int vendor(SQLException error) {
            return 0;
        }

        @Override
        public String timeout(long millis) {
            return "set statement_timeout = " + millis;
        }

        @Override
        public boolean preparesAnew(String mode) {
            return false;
        }
    }

    /** MariaDB Connector/J. `prepared`: the server keeps a statement; `binds`: it is prepared for each execution; `literals`: a Statement. */
    final class MariaDb implements JdbcDriver {
        private static final Pattern NUMBERED = Pattern.compile("^\\(conn=\\d+\\) ");

        @Override
        public String about() throws SQLException {
            Driver driver = DriverManager.getDriver("jdbc:mariadb://localhost/");
            return "MariaDB Connector/J " + driver.getMajorVersion() + "." + driver.getMinorVersion();
        }

        @Override
        public Connection connect(String mode, int fetchSize) throws SQLException {
            Properties own = new Properties();
            put(own, "user", "MARIADB_USER");
            put(own, "password", "MARIADB_PASSWORD");
            put(own, "serverSslCert", "MARIADB_SSL_CA");
            own.setProperty("sslMode", variable("MARIADB_SSL_CA").isEmpty() ? "disable" : "verify-ca");
            own.setProperty("connectionAttributes", "program_name:" + variable("MARIADB_PROGRAM_NAME"));
            own.setProperty("useServerPrepStmts", Boolean.toString(!mode.equals("literals")));
            own.setProperty("cachePrepStmts", "false");
            // As every other client sends it: begin and commit are the script's own, and a pool is nobody's.
            own.setProperty("allowMultiQueries", "false");
            String host = variable("MARIADB_HOST"), place = host.contains(":") ? "[" + host + "]" : host;
            String url = "jdbc:mariadb://" + place + ":" + variable("MARIADB_PORT") + "/" + variable("MARIADB_DATABASE");
            return DriverManager.getConnection(url, own);
        }

        @Override
        public String said(SQLException error) {
            return NUMBERED.matcher(String.valueOf(error.getMessage())).replaceFirst("");
        }

        @Override
        public int vendor(SQLException error) {
            return Math.max(0, Math.min(65535, error.getErrorCode()));
        }

        @Override
        public String timeout(long millis) {
            return "set max_statement_time = " + millis / 1000.0;
        }

        /** A backslash escapes, as sql_mode has it unless NO_BACKSLASH_ESCAPES is among it. */
        @Override
        public String quoted(String word) {
            return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'";
        }

        @Override
        public boolean preparesAnew(String mode) {
            return mode.equals("binds");
        }
    }
}
