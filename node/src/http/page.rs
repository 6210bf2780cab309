//! The page at `/`: what this node is and what can be asked of its HTTP port.

use std::fmt::Write;

/// The page as HTML, without scripts or anything fetched from elsewhere.
pub(super) fn page(about: &[(&'static str, String)], ready: &Result<(), String>) -> String {
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Holdfast node</title><style>\
         body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:44rem;padding:0 1rem}\
         th{text-align:left;padding-right:2rem;font-weight:normal}td{font-family:monospace}\
         @media(prefers-color-scheme:dark){body{background:#111;color:#eee}a{color:#8cf}}\
         </style></head><body><h1>Holdfast node</h1>",
    );
    let state = match ready {
        Ok(()) => "This node can take calls.".to_owned(),
        Err(why) => format!("This node cannot take calls: {}.", escape(why)),
    };
    // Writing to a string cannot fail.
    let _ = write!(html, "<p>{state}</p><table>");
    for (name, value) in about {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    html.push_str(
        "</table><ul><li><a href=\"/livez\">/livez</a>: whether the process should be left running</li>\
         <li><a href=\"/readyz\">/readyz</a>: whether it can take calls, or why not</li>\
         <li><a href=\"/metrics\">/metrics</a>: for Prometheus</li></ul></body></html>\n",
    );
    html
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_becomes_markup() {
        let html = page(&[("cluster", "<b>&\"'".into())], &Err("<no leader>".into()));
        assert!(html.contains("&lt;b&gt;&amp;&quot;&#39;"), "{html}");
        assert!(html.contains("cannot take calls: &lt;no leader&gt;."), "{html}");
    }
}
