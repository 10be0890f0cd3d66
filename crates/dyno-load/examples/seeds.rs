//! Writes the fuzzers' seed inputs into `<folder>/wire_client`, `mariadb_client` and `script`.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

const SCRIPTS: [&str; 4] = [
    "\\set aid random(1, 100000 * :scale)\nbegin;\nselect v from t where id = :aid;\ncommit;\n",
    "\\if :client_id = 0\nselect 1 as x \\gset p_\n\\elif :p_x > 2\n\\sleep 10 us\n\\else\nselect ':q' \\; select 2;\n\\endif\n",
    "\\startpipeline\nselect $$ ; $$;\n\\syncpipeline\nselect 'it''s' /* :c */ -- :d\n;\n\\endpipeline\n",
    "\\set z case when random_zipfian(1, 9, 1.5) % 2 = 0 then hash(:x, 7) else -3.5e2 end\nselect :z;\n\\redo\n",
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: seeds FOLDER")?);
    let scripts = SCRIPTS.iter().map(|script| script.as_bytes().to_vec()).collect();
    let (postgres, mariadb) = (dyno_load::rehearse::seeds(), dyno_load::rehearse::mariadb_seeds());
    for (name, seeds) in [("wire_client", postgres), ("mariadb_client", mariadb), ("script", scripts)] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
