// Writes rows that are serialised already as SSTables of Cassandra, for dbdyno's direct way in (direct.py). Started as a
// source file by Java 17 with Cassandra's jars on its class path.
//
// stdin: a byte says which statement (0 the parent's, 1 the child's), then for each of its values four bytes of length
// (-1: null, -2: unset) and as many bytes. The end of stdin ends the tables; then the number of rows is printed.
// Arguments: the folder KEYSPACE/TABLE, the table's CREATE, the two INSERTs (the first may be empty), types' CREATEs.

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;
import org.apache.cassandra.io.util.File;

/** Reads rows, writes tables. */
final class SSTables {
    private static final int BUFFER_MIB = 32;
    private static final int NULL = -1;
    private static final int UNSET = -2;

    private SSTables() {}

    public static void main(String[] words) throws IOException {
        CQLSSTableWriter[] writers = {null, null};
        int[] values = {0, 0};
        for (int which = 0; which < 2; which++) {
            String insert = words[2 + which];
            if (insert.isEmpty()) {
                continue;
            }
            CQLSSTableWriter.Builder made = CQLSSTableWriter.builder().inDirectory(new File(words[0]));
            for (int at = 4; at < words.length; at++) {
                made.withType(words[at]);
            }
            writers[which] = made.forTable(words[1]).using(insert).withBufferSizeInMiB(BUFFER_MIB)
                    .withPartitioner(Murmur3Partitioner.instance).build();
            values[which] = (int) insert.chars().filter(letter -> letter == '?').count();
        }
        long rows = 0;
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        for (int which = in.read(); which >= 0; which = in.read()) {
            List<ByteBuffer> row = new ArrayList<>(values[which]);
            for (int at = 0; at < values[which]; at++) {
                int length = in.readInt();
                if (length == UNSET) {
                    row.add(CQLSSTableWriter.UNSET_VALUE);
                } else if (length == NULL) {
                    row.add(null);
                } else {
                    byte[] bytes = new byte[length];
                    in.readFully(bytes);
                    row.add(ByteBuffer.wrap(bytes));
                }
            }
            writers[which].rawAddRow(row);
            rows++;
        }
        for (CQLSSTableWriter one : writers) {
            if (one != null) {
                one.close();
            }
        }
        System.out.println("rows " + rows);
        System.exit(0);
    }
}
