//! Puts a page's parts together.
//!
//! Nothing may be loaded from anywhere, and only the page's own script may run: its policy tells
//! the browser so. A nonce made from the whole page allows script and style. If a name could bring
//! markup into the page, that markup would not run, because whoever chose the name cannot know the
//! rest of the page. Figures are JSON in an element that does not run.

use serde::Serialize;
use twox_hash::XxHash64;

const STYLE: &str = include_str!("page/style.css");

/// A kind of page: its markup, and the scripts that bring it to life.
pub(in crate::report) struct Template {
    markup: &'static str,
    /// Each script sees those before it.
    scripts: &'static [&'static str],
}

const FORMAT: &str = include_str!("page/format.js");
const ELEMENTS: &str = include_str!("page/elements.js");
const NAMES: &str = include_str!("page/names.js");
const TREE: &str = include_str!("page/tree.js");
const FLAME: &str = include_str!("page/flame.js");
const CONTROLS: &str = include_str!("page/controls.js");
const PAIR: &str = include_str!("page/pair.js");
const GRAPH_OF_ONE: &str = include_str!("page/graph.js");

/// Where a flame graph is drawn, with its controls.
const FLAME_PLACE: &str = include_str!("page/flame.html");
/// The same as a part of another page.
pub(super) const FLAME_SECTION: &str = concat!(
    "<section id=\"flame\" aria-labelledby=\"title\">\n<h2 id=\"title\"></h2>\n<p id=\"subject\" class=\"subject\"></p>\n",
    include_str!("page/flame.html"),
    "</section>\n"
);
const TABLES: &str = include_str!("page/tables.js");

/// The page of a data set.
pub(super) const REPORT: Template = Template {
    markup: include_str!("page/page.html"),
    scripts: &[
        FORMAT,
        ELEMENTS,
        NAMES,
        TREE,
        FLAME,
        CONTROLS,
        include_str!("page/chart.js"),
        include_str!("page/timeline.js"),
        include_str!("page/power.js"),
        TABLES,
        include_str!("page/flight.js"),
        include_str!("page/heat.js"),
        include_str!("page/threads.js"),
        include_str!("page/methods.js"),
        include_str!("page/callers.js"),
        include_str!("page/collections.js"),
        include_str!("page/moved.js"),
        include_str!("page/facts.js"),
        include_str!("page/page.js"),
    ],
};

/// A flame graph alone.
pub(in crate::report) const GRAPH: Template = Template {
    markup: include_str!("page/graph.html"),
    scripts: &[FORMAT, ELEMENTS, NAMES, TREE, FLAME, CONTROLS, PAIR, GRAPH_OF_ONE],
};

/// Two data sets side by side.
pub(in crate::report) const COMPARISON: Template = Template {
    markup: include_str!("page/comparison.html"),
    scripts: &[FORMAT, ELEMENTS, NAMES, TREE, FLAME, CONTROLS, PAIR, TABLES, include_str!("page/comparison.js")],
};

/// A page of a server without a picture that needs figures.
pub(super) const SERVED: Template = Template {
    markup: include_str!("page/served.html"),
    scripts: &[FORMAT, ELEMENTS, CONTROLS, SERVED_SCRIPT, "firstTheme();\nfollowTheme(() => {});\nsayReady();\n"],
};

/// A page of a server with a flame graph.
pub(super) const SERVED_GRAPH: Template = Template {
    markup: include_str!("page/served.html"),
    scripts: &[FORMAT, ELEMENTS, NAMES, TREE, FLAME, CONTROLS, PAIR, SERVED_SCRIPT, GRAPH_OF_ONE],
};

const SERVED_SCRIPT: &str = include_str!("page/served.js");

pub(in crate::report) fn page(template: &Template, figures: &impl Serialize) -> Vec<u8> {
    page_with(template, figures, &[])
}

/// The same with markup for other places. Forms can be sent if there is any: to where the page is from.
pub(in crate::report) fn page_with(template: &Template, figures: &impl Serialize, places: &[(&str, &str)]) -> Vec<u8> {
    // Serialising to a string fails for maps with odd keys only, of which there are none.
    let json = escape(&serde_json::to_string(figures).unwrap_or_else(|_| "null".to_owned()));
    let script = format!("(() => {{\n\"use strict\";\n{}}})();\n", template.scripts.concat());
    let seed_of = |seed, (_, markup): &(&str, &str)| XxHash64::oneshot(seed, markup.as_bytes());
    let hash = |seed| XxHash64::oneshot(places.iter().fold(seed, seed_of), json.as_bytes());
    let nonce = format!("{:016x}{:016x}", hash(0), hash(1));
    let mut page = String::with_capacity(template.markup.len() + STYLE.len() + script.len() + json.len());
    // Places are looked for in the template only, never in what was put in.
    let mut rest = template.markup;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((place, behind)) = after.split_once("}}") else { break };
        page.push_str(before);
        let given = places.iter().find(|(name, _)| *name == place).map(|(_, markup)| *markup);
        page.push_str(match place {
            "nonce" => &nonce,
            "style" => STYLE,
            "figures" => &json,
            "script" => &script,
            "flame" => given.unwrap_or(FLAME_PLACE),
            "forms" if places.is_empty() => "'none'",
            "forms" => "'self'",
            _ => given.unwrap_or(""),
        });
        rest = behind;
    }
    page.push_str(rest);
    page.into_bytes()
}

/// JSON that ends no element and is also a script: `<` cannot open a tag, and the line separators
/// that JSON allows are spelled out.
fn escape(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATES: [Template; 5] = [REPORT, GRAPH, COMPARISON, SERVED, SERVED_GRAPH];

    #[test]
    fn no_name_ends_the_element_that_figures_are_in() {
        let hostile = "</script><script>alert(1)</script><!--\u{2028}\u{2029}";
        let json = escape(&serde_json::to_string(hostile).unwrap());
        assert!(!json.contains(['<', '\u{2028}', '\u{2029}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
        for template in TEMPLATES {
            let plain = page(&template, &"").iter().filter(|byte| **byte == b'<').count();
            assert_eq!(page(&template, &hostile).iter().filter(|byte| **byte == b'<').count(), plain);
        }
    }

    #[test]
    fn scripts_put_no_text_into_the_page_as_markup() {
        for script in TEMPLATES.iter().flat_map(|template| template.scripts) {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!script.contains(way), "a script has {way}");
            }
        }
    }

    #[test]
    fn nothing_is_loaded_from_anywhere() {
        let markups = TEMPLATES.iter().map(|template| template.markup);
        for part in TEMPLATES.iter().flat_map(|template| template.scripts).copied().chain(markups).chain([STYLE]) {
            for way in ["http:", "https:", "//cdn", "@import", "fetch(", "XMLHttpRequest", "WebSocket", " src="] {
                assert!(!part.replace("http://www.w3.org/", "").contains(way), "a part of the page has {way}");
            }
        }
    }
}
