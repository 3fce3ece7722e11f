//! The contents of the demo's servers.

/// One embedded server.
pub(super) struct Theme {
    pub(super) name: &'static str,
    /// The description in the config.
    pub(super) description: &'static str,
    pub(super) instructions: &'static str,
    pub(super) tools: &'static [ToolTheme],
    /// (uri, name, text)
    pub(super) resources: &'static [(&'static str, &'static str, &'static str)],
    /// (name, description)
    pub(super) prompts: &'static [(&'static str, &'static str)],
}

pub(super) struct ToolTheme {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// (name, JSON type, description); all are required.
    pub(super) parameters: &'static [(&'static str, &'static str, &'static str)],
}

const fn tool(
    name: &'static str,
    description: &'static str,
    parameters: &'static [(&'static str, &'static str, &'static str)],
) -> ToolTheme {
    ToolTheme { name, description, parameters }
}

pub(super) const THEMES: [Theme; 3] = [
    Theme {
        name: "notes",
        description: "Keep, search and summarise personal notes. Use when the user wants to \
            remember something.",
        instructions: "Titles are unique; adding a note with a known title replaces it.",
        tools: &[
            tool(
                "add_note",
                "Adds a note, or replaces the one of the same title. The text may be Markdown.",
                &[
                    ("title", "string", "A short title that tells the note from the others"),
                    ("text", "string", "The note itself, in Markdown"),
                ],
            ),
            tool(
                "list_notes",
                "Lists the titles of all notes, newest first. Use search_notes when there are \
                    many.",
                &[("limit", "integer", "The largest number of titles to return")],
            ),
            tool(
                "search_notes",
                "Searches titles and texts for words. Returns the notes in the order of their fit.",
                &[
                    ("words", "string", "Words to look for; all of them must occur"),
                    ("limit", "integer", "The largest number of notes to return"),
                ],
            ),
            tool(
                "delete_note",
                "Deletes the note of this title for good. There is no way to get it back.",
                &[("title", "string", "The title of the note to delete")],
            ),
        ],
        resources: &[("note://welcome", "welcome", "Welcome to the demo's notes.")],
        prompts: &[("summarize", "Summarise all notes in five lines.")],
    },
    Theme {
        name: "weather",
        description: "Weather now and for the next days, anywhere on earth. Use when a task \
            depends on the weather.",
        instructions: "Temperatures are in degrees Celsius.",
        tools: &[
            tool(
                "current_weather",
                "The weather at a place at this moment: temperature, wind, rain and clouds.",
                &[("place", "string", "The name of a town, or latitude and longitude")],
            ),
            tool(
                "forecast",
                "The weather at a place for up to ten days, one entry for each day.",
                &[
                    ("place", "string", "The name of a town, or latitude and longitude"),
                    ("days", "integer", "How many days, from 1 to 10"),
                ],
            ),
            tool(
                "warnings",
                "Official warnings for a region that are in force now, with their level and end.",
                &[("region", "string", "The name of a region or country")],
            ),
        ],
        resources: &[("weather://stations", "stations", "Oslo, Quito, Nairobi")],
        prompts: &[],
    },
    Theme {
        name: "library",
        description: "Search a library's catalog, reserve and renew books. Use when the user asks \
            for something to read.",
        instructions: "",
        tools: &[
            tool(
                "search_books",
                "Searches the catalog by title, author or subject, and says which copies are in.",
                &[
                    ("query", "string", "Title, author or subject"),
                    ("language", "string", "An ISO 639-1 code such as en or de"),
                ],
            ),
            tool(
                "reserve_book",
                "Reserves a copy of a book for a reader, to be fetched within three days.",
                &[
                    ("isbn", "string", "The ISBN of the book, without dashes"),
                    ("reader", "string", "The reader's card number"),
                ],
            ),
            tool(
                "renew_loan",
                "Renews a loan for another four weeks, unless somebody else waits for the book.",
                &[("loan", "string", "The number of the loan")],
            ),
            tool(
                "list_loans",
                "Lists what a reader has borrowed, with the day on which each book is due.",
                &[("reader", "string", "The reader's card number")],
            ),
        ],
        resources: &[],
        prompts: &[("recommend", "Recommend three books on a subject.")],
    },
];
