//! Search in the tools of a snapshot. A tool that several offers of its server have is found once.

use super::{
    IndexedOffer, IndexedTools, ListedTools, Presence, SearchHit, SearchIndex, SearchTarget,
    Snapshot, listed_offers::ListedOffer,
};

impl Snapshot {
    /// Returns the best results for `query`, best first. Equal results keep config order. `within`
    /// is the position of the offer to search.
    pub fn search(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<SearchHit> {
        self.index().search(query, &|target| is_within(self, target, within), limit)
    }

    /// Searches by words only, even if meanings are known. Used for comparison.
    pub fn search_words(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<SearchHit> {
        self.index().search_words(query, &|target| is_within(self, target, within), limit)
    }

    /// Creates the index. The time that this takes grows with the number of tools.
    pub fn prepare_search(&self) {
        self.index();
    }

    /// Returns whether the index exists, so that a search does not have to create it.
    pub fn is_indexed(&self) -> bool {
        self.search_index.get().is_some()
    }

    fn index(&self) -> &SearchIndex {
        self.search_index.get_or_init(|| {
            let offers = self.appearances(ListedTools::Searched);
            let indexed: Vec<_> = offers.iter().map(indexed).collect();
            SearchIndex::of(&indexed)
        })
    }
}

/// Returns whether a target of the search belongs to an offer.
fn is_within(snapshot: &Snapshot, target: SearchTarget, within: Option<usize>) -> bool {
    let Some(within) = within else { return true };
    let offer = &snapshot.offers[within];
    match target {
        SearchTarget::Offer(at) => at == within,
        SearchTarget::Tool(at) if at.offer == within => true,
        SearchTarget::Tool(at) => {
            let (found, tool) = snapshot.tools().tool(at);
            let is_in = |tool: &str| {
                let tools = offer.exposed().map(|exposed| exposed.catalog.tools.as_slice());
                tools.unwrap_or_default().iter().any(|own| own.name == tool)
            };
            found.server() == offer.server() && (offer.id.is_whole() || is_in(&tool.name))
        }
    }
}

/// Returns an offer as the search index reads it.
fn indexed<'a>(listed: &'a ListedOffer<'a>) -> IndexedOffer<'a> {
    let offer = listed.offer;
    let tools = match (offer.exposed(), &offer.presence) {
        (Some(_), _) if listed.tools.is_empty() => IndexedTools::None,
        (Some(exposed), _) => IndexedTools::Known {
            tools: &exposed.catalog.tools,
            documents: &exposed.documents,
            found: &listed.tools,
        },
        (None, Presence::Offered { .. }) => IndexedTools::Unknown,
        _ => IndexedTools::None,
    };
    let description = offer.description.as_deref().unwrap_or_default();
    let server_name = offer.server_name();
    IndexedOffer { name: &offer.name, server_name, description, tools }
}
