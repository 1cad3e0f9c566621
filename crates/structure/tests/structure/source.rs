//! Rust source as the structure check sees it: modules, the names each defines or imports, the
//! paths each uses.
//!
//! Test modules and items are left out: a test may use anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A path as written: its segments, which may include `crate` and `super`.
pub type Segments = Vec<String>;

/// The meaning of a name in a module's scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// An item that the module's file defines.
    Item,
    /// A module, by its index in [`Source::modules`].
    Module(usize),
    /// Another name for the target of this path.
    Import(Segments),
}

/// A function of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The type's path, as the `impl` block writes it.
    pub of: Segments,
    /// The function's name.
    pub name: String,
    /// Whether only its module and that module's children can call it.
    pub private: bool,
}

/// One module: a file, or an inline module in one.
#[derive(Debug, Default)]
pub struct Module {
    /// Its path, starting with the crate's name.
    pub path: Segments,
    /// The crate's root module.
    pub root: usize,
    /// The file with its text.
    pub file: PathBuf,
    /// The enclosing module.
    pub parent: Option<usize>,
    /// Names in its scope. A module and a function may share one.
    pub names: BTreeMap<String, Vec<Name>>,
    /// Paths from glob imports (`use path::*`).
    pub globs: Vec<Segments>,
    /// Every path that its code uses.
    pub used: Vec<Segments>,
    /// Paths that it re-exports (`pub use`).
    pub handed_on: Vec<Segments>,
    /// Functions in `impl` blocks.
    pub functions: Vec<Function>,
    /// Names of methods that its code calls.
    pub called: Vec<String>,
    /// Types whose values it builds by their fields.
    pub built: Vec<Segments>,
    /// Macros that it calls.
    pub invoked: Vec<Segments>,
}

/// The modules of crates.
#[derive(Debug, Default)]
pub struct Source {
    /// Parents before children.
    pub modules: Vec<Module>,
    /// The root modules, by the names that other crates use.
    pub roots: BTreeMap<String, usize>,
}

impl Source {
    /// Reads a crate of this name, whose root module is the file `root`. `read` returns a file's
    /// text, or `None` if it does not exist.
    ///
    /// # Panics
    ///
    /// If a module has no file, or a file is not valid Rust.
    pub fn read(&mut self, name: &str, root: &Path, read: &dyn Fn(&Path) -> Option<String>) {
        let folder = root.parent().expect("the root file is in a folder").to_path_buf();
        let (path, root_index) = (vec![name.to_string()], self.modules.len());
        let module = Module { path, root: root_index, file: root.to_path_buf(), ..Module::default() };
        let items = parse(root, &read(root).expect("the crate has its root file"));
        self.roots.insert(name.to_string(), root_index);
        self.add(Place { folder, read }, module, &items);
    }

    fn add(&mut self, place: Place<'_>, module: Module, items: &[syn::Item]) -> usize {
        let index = self.modules.len();
        self.modules.push(module);
        let mut reader = Reader::default();
        for item in items.iter().filter(|item| !is_left_out(attributes(item))) {
            let syn::Item::Mod(child) = item else {
                reader.visit_item(item);
                continue;
            };
            let child_index = self.add_child(&place, index, child);
            reader.define(&child.ident, Name::Module(child_index));
        }
        let module = &mut self.modules[index];
        module.names = reader.module.names;
        module.globs = reader.module.globs;
        module.used = reader.module.used;
        module.handed_on = reader.module.handed_on;
        module.functions = reader.module.functions;
        module.called = reader.module.called;
        module.built = reader.module.built;
        module.invoked = reader.module.invoked;
        index
    }

    fn add_child(&mut self, place: &Place<'_>, parent: usize, child: &syn::ItemMod) -> usize {
        let name = child.ident.to_string();
        let mut path = self.modules[parent].path.clone();
        path.push(name.clone());
        let folder = place.folder.join(&name);
        let (file, items) = match &child.content {
            Some((_, items)) => (self.modules[parent].file.clone(), items.clone()),
            None => {
                let candidates = [place.folder.join(format!("{name}.rs")), folder.join("mod.rs")];
                let found = candidates.into_iter().find_map(|file| (place.read)(&file).map(|text| (file, text)));
                let (file, text) = found.unwrap_or_else(|| panic!("module {} has no file", path.join("::")));
                let items = parse(&file, &text);
                (file, items)
            }
        };
        let root = self.modules[parent].root;
        let module = Module { path, root, file, parent: Some(parent), ..Module::default() };
        self.add(Place { folder, read: place.read }, module, &items)
    }
}

/// The folder of a module's children, and how to read them.
struct Place<'a> {
    folder: PathBuf,
    read: &'a dyn Fn(&Path) -> Option<String>,
}

fn parse(file: &Path, text: &str) -> Vec<syn::Item> {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items
}

fn is_left_out(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Meta>().is_ok_and(|condition| match condition {
                syn::Meta::Path(path) => path.is_ident("test") || path.is_ident("windows"),
                syn::Meta::List(list) => list.path.is_ident("all") && list.tokens.to_string().starts_with("test"),
                syn::Meta::NameValue(_) => false,
            })
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Collects what one module's items define and use.
#[derive(Default)]
struct Reader {
    module: Module,
    depth: usize,
}

impl Reader {
    fn define(&mut self, name: &syn::Ident, what: Name) {
        // Items inside a function are not visible outside it.
        if self.depth == 0 || matches!(what, Name::Import(_)) {
            self.module.names.entry(name.to_string()).or_default().push(what);
        }
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String], public: bool) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), public),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, public));
            }
            syn::UseTree::Glob(_) => self.module.globs.push(before.to_vec()),
            syn::UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = before.last() {
                    let ident = syn::Ident::new(last, name.ident.span());
                    self.take(&ident, before.to_vec(), public);
                }
            }
            syn::UseTree::Name(name) => self.take(&name.ident, with(&name.ident), public),
            syn::UseTree::Rename(rename) => self.take(&rename.rename, with(&rename.ident), public),
        }
    }

    fn take(&mut self, name: &syn::Ident, path: Segments, public: bool) {
        self.define(name, Name::Import(path.clone()));
        if public { &mut self.module.handed_on } else { &mut self.module.used }.push(path);
    }

    /// Macros have no syntax of their own. Every `a::b::c` in one counts as a path, every `.name`
    /// as a call, every `a::b {` as a value.
    fn scan(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree::{Group, Ident, Punct};
        let mut path: Segments = Vec::new();
        let mut before = (' ', ' ');
        for token in tokens {
            match token {
                Ident(ident) => {
                    if before != (':', ':') {
                        self.module.used.push(std::mem::take(&mut path));
                    }
                    if before.1 == '.' {
                        self.module.called.push(ident.to_string());
                    } else {
                        path.push(ident.to_string());
                    }
                    before = (' ', ' ');
                }
                Punct(punct) => before = (before.1, punct.as_char()),
                Group(group) => {
                    if group.delimiter() == proc_macro2::Delimiter::Brace && !path.is_empty() {
                        self.module.built.push(path.clone());
                    }
                    self.scan(group.stream());
                    before = (' ', ' ');
                }
                _ => before = (' ', ' '),
            }
        }
        self.module.used.push(path);
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_left_out(attributes(item)) {
            return;
        }
        match item {
            syn::Item::Const(item) => self.define(&item.ident, Name::Item),
            syn::Item::Enum(item) => self.define(&item.ident, Name::Item),
            syn::Item::Fn(item) => self.define(&item.sig.ident, Name::Item),
            syn::Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.define(name, Name::Item);
                }
            }
            syn::Item::Static(item) => self.define(&item.ident, Name::Item),
            syn::Item::Struct(item) => self.define(&item.ident, Name::Item),
            syn::Item::Trait(item) => self.define(&item.ident, Name::Item),
            syn::Item::Type(item) => self.define(&item.ident, Name::Item),
            syn::Item::Union(item) => self.define(&item.ident, Name::Item),
            syn::Item::Use(item) => {
                let public = !matches!(item.vis, syn::Visibility::Inherited);
                return self.import(&item.tree, &[], public);
            }
            _ => {}
        }
        self.depth += 1;
        visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let (None, syn::Type::Path(of)) = (&item.trait_, &*item.self_ty) {
            for inner in &item.items {
                if let syn::ImplItem::Fn(function) = inner {
                    let private = matches!(function.vis, syn::Visibility::Inherited);
                    let name = function.sig.ident.to_string();
                    self.module.functions.push(Function { of: segments(&of.path), name, private });
                }
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.module.used.push(segments(path));
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.module.called.push(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_struct(&mut self, value: &'ast syn::ExprStruct) {
        self.module.built.push(segments(&value.path));
        visit::visit_expr_struct(self, value);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.module.used.push(segments(&called.path));
        self.module.invoked.push(segments(&called.path));
        self.scan(called.tokens.clone());
    }

    // The path of an attribute or a visibility brings no name in.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

fn segments(path: &syn::Path) -> Segments {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
