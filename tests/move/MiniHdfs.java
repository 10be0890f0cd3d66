import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one name node and one data node on loopback, at ports picked at run time; it ends with its stdin. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf, new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println(cluster.getFileSystem().getUri());
        System.out.flush();
        while (System.in.read() >= 0) {}
        cluster.shutdown();
    }
}
