//! x
use std::rc::Rc;
use quorate_tokio::{core::address::HostPort, Server, zoo_cfg::ZooCfg};
use crate::failure::Failure;
pub(crate) struct Door;
pub(crate) struct Desk;
impl Door { pub(crate) async fn open(_a:&HostPort)->Result<Self,Failure>{Ok(Self)} pub(crate) async fn serve(self,_d:Rc<Desk>){} }
impl Desk { pub(crate) fn new(_c:ZooCfg,_s:Server)->Self{Self} }
