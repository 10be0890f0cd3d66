//! What the code of a server says: `cargo run -p dyno-record --example look -- /path/to/postgres`.

use dyno_record::{code::Code, elf::Image, names::Names, sites};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let image = Image::open(std::path::Path::new(&path))?;
    let pointer = image.need("my_wait_event_info")?.addr;
    let begin = std::time::Instant::now();
    let code = Code::read(&image, &[], &[pointer]);
    println!("decoded in {:?}, {} readings", begin.elapsed(), code.users(pointer).len());
    let sites = sites::sites(&code, pointer)?;
    println!("sites {} in {:?}", sites.len(), begin.elapsed());
    let mut names =
        Names::new(&code, image.need("pgstat_get_wait_event")?.addr, image.need("pgstat_get_wait_event_type")?.addr);
    for site in &sites {
        let name = match site.value {
            sites::Value::Known(0) => String::new(),
            sites::Value::Known(value) => format!("{:?}", names.of(value)),
            sites::Value::Register(register) => format!("{register:?}"),
        };
        println!("{:x} {:x} {} {name}", site.store, site.probe, if site.is_stepped { "stepped" } else { "" });
    }
    for class in 1..=11u32 {
        let all: Vec<_> = (0..100).map(|at| names.of(class << 24 | at).1).collect();
        println!("{class} {:?}: {}", names.of(class << 24).0, all.join(" "));
    }
    Ok(())
}
