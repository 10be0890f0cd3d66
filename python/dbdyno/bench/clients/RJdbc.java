// What the clients in R call by way of rJava: a connection, and a result as columns.

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;

public final class RJdbc {
    /** A connection as the environment says. */
    public static Connection connect() throws SQLException {
        return JdbcDriver.chosen().connect("literals", 0);
    }

    /** Which columns are numbers. */
    public static boolean[] numbers(ResultSet result) throws SQLException {
        boolean[] found = new boolean[result.getMetaData().getColumnCount()];
        for (int at = 0; at < found.length; at++) found[at] = isNumber(result.getMetaData().getColumnType(at + 1));
        return found;
    }

    private static boolean isNumber(int type) {
        return switch (type) {
            case Types.SMALLINT, Types.INTEGER, Types.BIGINT, Types.REAL, Types.FLOAT, Types.DOUBLE, Types.NUMERIC, Types.DECIMAL -> true;
            default -> false;
        };
    }

    /** All rows, an array for each column: double[] (NaN for NULL) or String[]. */
    public static Object[] columns(ResultSet result) throws SQLException {
        boolean[] numbers = numbers(result);
        List<List<Object>> read = new ArrayList<>();
        for (int at = 0; at < numbers.length; at++) read.add(new ArrayList<>());
        while (result.next()) {
            for (int at = 0; at < numbers.length; at++) {
                Object value = numbers[at] ? (Object) result.getDouble(at + 1) : result.getString(at + 1);
                read.get(at).add(result.wasNull() && numbers[at] ? (Object) Double.NaN : value);
            }
        }
        Object[] found = new Object[numbers.length];
        for (int at = 0; at < found.length; at++) {
            List<Object> own = read.get(at);
            found[at] = numbers[at] ? own.stream().mapToDouble(value -> (Double) value).toArray() : own.toArray(new String[0]);
        }
        return found;
    }

    private RJdbc() {}
}
