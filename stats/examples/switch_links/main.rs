mod ours; mod tree; mod world; mod row;
use world::*; use tree::*;
fn main(){
  let t2=Tree::two_levels(32,16,16,false); let t3=Tree::three_levels(12,false); let h2=Tree::two_levels(32,16,16,true);let h3=Tree::three_levels(8,true);
  for (n,t) in [("two",&t2),("three",&t3),("hash2",&h2),("hash3",&h3)] {
   for f in [Fault::None,Fault::Cables(1,0.9f64.ln()),Fault::Cables(1,0.95f64.ln()),Fault::Cables(1,0.7f64.ln()),Fault::Cables(1,DEAD),Fault::OneWay(0.9f64.ln()),Fault::Cables(2,0.9f64.ln()),Fault::Switch(0.9f64.ln()),Fault::Nic(0.9f64.ln())] {
    let start=std::time::Instant::now(); let runs=20; let (mut hit,mut named,mut truth,mut among,mut asked,mut susp)=(0,0,0,0,0,0); let mut ex=String::new();
    for s in 0..runs { let mut w=World::new(t,f,0.01,0.0,s+1000); let mut tests=ours::screen(&mut w,6); let n0=tests.len(); let said=ours::run(&mut w,&mut tests); asked+=tests.len()-n0; susp+=usize::from(said.suspected);
      truth+=w.truth.len(); named+=said.named.len();
      for p in &w.truth { if said.named.iter().any(|(q,a)| q==p && a.is_empty()) {hit+=1} else {ex=format!("{:?} -> {:?}",w.truth,said.named)} if said.named.iter().any(|(q,a)| q==p||a.contains(p)) {among+=1}}
      if w.truth.is_empty() && !said.named.is_empty() { ex=format!("{:?}",said.named) }
    }
    ex.truncate(300);
    println!("{n} {f:?}: hit {hit}/{truth} among {among} named {named} suspected {susp} probes/run {} ms/run {} {ex}", asked/runs as usize, start.elapsed().as_millis()/runs as u128);
   }
  }
}
