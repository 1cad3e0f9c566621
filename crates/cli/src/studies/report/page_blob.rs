//! Compressed parts of the page.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use html_escape::encode_double_quoted_attribute;
use serde::Serialize;
use std::io::Write;

/// A compressed part of the page.
pub struct PageBlob {
    name: String,
    text: String,
}

impl PageBlob {
    /// Compresses the content.
    pub fn new(name: &str, content: &impl Serialize) -> PageBlob {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        serde_json::to_writer(&mut packed, content).expect("rows are serialisable, and memory takes them");
        packed.flush().expect("memory takes the rest");
        let bytes = packed.finish().expect("memory takes the end");
        PageBlob { name: name.to_string(), text: BASE64_STANDARD.encode(bytes) }
    }

    /// The element that holds it, and ends its line.
    pub fn to_element(&self) -> String {
        let name = encode_double_quoted_attribute(&self.name);
        format!("<script type=\"text/plain\" id=\"{name}\">{}</script>\n", self.text)
    }

    /// The compressed bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(&self.text).expect("it was encoded")
    }
}
