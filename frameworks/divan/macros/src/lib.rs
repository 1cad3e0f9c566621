//! The attributes of `cyclescope-divan`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

/// Makes a function a benchmark: `#[divan::bench]`, or `#[divan::bench(args = [1, 10])]` for a
/// function with an argument. `args` is an array, a slice, a range or another iterator. `name =
/// "…"` replaces the function's name, and `ignore` leaves it out. The first parameter of a function
/// may be a `divan::Bencher`.
#[proc_macro_attribute]
pub fn bench(options: TokenStream, function: TokenStream) -> TokenStream {
    match registered(options, function.clone()) {
        Ok(more) => function.into_iter().chain(more).collect(),
        Err(refused) => compile_error(refused).into_iter().chain(function).collect(),
    }
}

/// Not supported.
#[proc_macro_attribute]
pub fn bench_group(_: TokenStream, module: TokenStream) -> TokenStream {
    let message =
        "cyclescope-divan has no groups: leave out the attribute, the module's name is in those of its benchmarks";
    compile_error((Span::call_site(), message.into())).into_iter().chain(module).collect()
}

/// The place and the text of a compiler's error.
type Refused = (Span, String);

fn compile_error((at, message): Refused) -> TokenStream {
    let error: TokenStream = format!("::core::compile_error!({message:?});").parse().unwrap_or_default();
    let at_place = |mut token: TokenTree| {
        token.set_span(at);
        token
    };
    error.into_iter().map(at_place).collect()
}

/// The code that registers a function.
fn registered(options: TokenStream, function: TokenStream) -> Result<TokenStream, Refused> {
    let options = BenchOptions::parse(options)?;
    let ignore = options.ignore.unwrap_or_else(|| has_ignore(function.clone()).to_string());
    let (name, parameters) = signature(function)?;
    let shown = options.name.unwrap_or_else(|| format!("{:?}", name.trim_start_matches("r#")));
    let pass = "::divan::registry::pass_argument(&arg)";
    let call = match (&options.args, parameters) {
        (None, 0) => format!("cases.case(None, |bencher| bencher.bench({name}));"),
        (None, 1) => format!("cases.case(None, {name});"),
        (Some(args), 1) => format!(
            "for arg in ({args}) {{
                cases.case(Some(&arg), |bencher| bencher.bench(|| {name}(::divan::black_box({pass}))));
            }}"
        ),
        (Some(args), 2) => {
            format!("for arg in ({args}) {{ cases.case(Some(&arg), |bencher| {name}(bencher, {pass})); }}")
        }
        _ => {
            let message = "cyclescope-divan: without `args` a function takes nothing or a Bencher, \
                        with `args` an argument, or a Bencher and an argument";
            return Err((Span::call_site(), message.into()));
        }
    };
    let code = format!(
        r#"const _: () = {{
            fn run(cases: &mut ::divan::registry::Cases) {{ {call} }}
            extern "C" fn register() {{
                static ENTRY: ::divan::registry::Entry =
                    ::divan::registry::Entry::new(::core::module_path!(), {shown}, {ignore}, run);
                ENTRY.register();
            }}
            #[used]
            #[unsafe(link_section = ".init_array")]
            static REGISTER: extern "C" fn() = register;
        }};"#
    );
    code.parse().map_err(|error| (Span::call_site(), format!("cyclescope-divan: {error}")))
}

/// The options of the attribute, as the text of their expressions.
#[derive(Default)]
struct BenchOptions {
    args: Option<String>,
    name: Option<String>,
    ignore: Option<String>,
}

impl BenchOptions {
    fn parse(options: TokenStream) -> Result<BenchOptions, Refused> {
        let mut parsed = BenchOptions::default();
        for option in split_at_commas(options) {
            let mut tokens = option.into_iter();
            let Some(first) = tokens.next() else { continue };
            let (at, name) = (first.span(), first.to_string());
            let value = match tokens.next() {
                None => None,
                Some(TokenTree::Punct(sign)) if sign.as_char() == '=' => {
                    Some(tokens.collect::<TokenStream>().to_string())
                }
                Some(other) => return Err((other.span(), "cyclescope-divan: an option is `name = value`".into())),
            };
            match (name.as_str(), value) {
                ("args", Some(value)) => parsed.args = Some(value),
                ("name", Some(value)) => parsed.name = Some(value),
                ("ignore", value) => parsed.ignore = Some(value.unwrap_or("true".into())),
                (name, _) => return Err((at, refuse_option(name))),
            }
        }
        Ok(parsed)
    }
}

/// Why an option is not supported.
fn refuse_option(name: &str) -> String {
    let instead = match name {
        "sample_count" | "sample_size" | "min_time" | "max_time" | "skip_ext_time" => {
            "leave it out, the number of iterations is chosen by their time"
        }
        "types" | "consts" => "write a function for each type or constant",
        "threads" => "all benchmarks run on one thread",
        "counters" | "bytes_count" | "chars_count" | "items_count" => "divide the cycles by the number",
        "crate" => "name the dependency `divan`",
        _ => "it has `args`, `ignore` and `name`",
    };
    format!("cyclescope-divan has no option `{name}`: {instead}")
}

/// The parts between commas outside the brackets of types.
fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let (mut parts, mut part, mut depth, mut last) = (Vec::new(), Vec::new(), 0, ' ');
    for token in tokens {
        let sign = match &token {
            TokenTree::Punct(sign) => sign.as_char(),
            _ => ' ',
        };
        match sign {
            // `Vec::<u8>`; other such signs compare.
            '<' if last == ':' || depth > 0 => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ => {}
        }
        last = sign;
        if sign == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part).into_iter().collect());
        } else {
            part.push(token);
        }
    }
    parts.push(part.into_iter().collect());
    parts
}

/// Whether a function has the attribute `ignore`.
fn has_ignore(function: TokenStream) -> bool {
    let attributes = function.into_iter().take_while(|token| token.to_string() != "fn");
    let ignore = |token: TokenTree| match token {
        TokenTree::Group(group) => group.stream().into_iter().next().is_some_and(|first| first.to_string() == "ignore"),
        _ => false,
    };
    attributes.into_iter().any(ignore)
}

/// A function's name, and its number of parameters.
fn signature(function: TokenStream) -> Result<(String, usize), Refused> {
    let mut tokens = function.into_iter().skip_while(|token| token.to_string() != "fn").skip(1);
    let name = tokens.next().ok_or((Span::call_site(), "cyclescope-divan: this is not a function".to_string()))?;
    match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            Ok((name.to_string(), parameters(group.stream())))
        }
        _ => {
            let message = "cyclescope-divan has no generic benchmarks: it takes neither `types` nor `consts`";
            Err((name.span(), message.into()))
        }
    }
}

/// Counts the parts between commas outside angle brackets.
fn parameters(list: TokenStream) -> usize {
    let (mut depth, mut number, mut any, mut last) = (0, 0, false, ' ');
    for token in list {
        let sign = match &token {
            TokenTree::Punct(sign) => sign.as_char(),
            _ => ' ',
        };
        match sign {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if sign == ',' && depth == 0 {
            number += usize::from(any);
            any = false;
        } else {
            any = true;
        }
        last = sign;
    }
    number + usize::from(any)
}
