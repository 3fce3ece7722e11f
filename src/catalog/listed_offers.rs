//! The appearance of offers in lists, in which each tool is once.
//!
//! Of the offers of a server that have a tool, the first in config order lists it.

use std::collections::HashSet;

use super::{ExposedCatalog, Offer, OfferVisibility, Presence, ServerId, Snapshot};

/// The offers whose tools a list contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedTools {
    /// The loaded ones.
    Live,
    /// The loaded ones, and others whose tools are known.
    Known,
    /// Every offer with known tools, even if a list does not show the offer.
    Searched,
}

/// An offer as it appears in a list.
#[derive(Clone, Debug)]
pub struct ListedOffer<'a> {
    /// The position in the snapshot.
    pub position: usize,
    pub offer: &'a Offer,
    pub visibility: OfferVisibility<'a>,
    /// The positions, in its catalog, of the tools that it lists.
    pub tools: Vec<usize>,
}

impl Snapshot {
    /// Returns the offers that appear in a list, in config order, some of them hidden. The toolsets
    /// of a server are left out if the list has all its tools.
    pub fn listed(&self, tools: ListedTools) -> Vec<ListedOffer<'_>> {
        let mut listed = self.appearances(tools);
        let mut whole: Option<(ServerId, WholeServer)> = None;
        listed.retain_mut(|it| {
            if it.offer.id.is_whole() {
                whole = Some((it.offer.server(), it.as_whole_server(tools)));
                return true;
            }
            let of_server = whole.filter(|(server, _)| *server == it.offer.server());
            if let OfferVisibility::Offered { trouble, .. } = &mut it.visibility {
                // The line of the server has the same cause.
                let is_repeated = of_server.is_some_and(|(_, line)| line != WholeServer::Hidden);
                *trouble = trouble.filter(|_| !is_repeated);
            }
            of_server.is_none_or(|(_, line)| line != WholeServer::Complete)
        });
        listed
    }

    /// Returns all offers, with the tools that each of them lists.
    pub(super) fn appearances(&self, tools: ListedTools) -> Vec<ListedOffer<'_>> {
        let mut taken: HashSet<&str> = HashSet::new();
        let mut before = None;
        let offers = self.offers.iter().enumerate().map(|(position, offer)| {
            let visibility = offer.visibility(self.settings.lists.listing);
            let listed = match (tools, &visibility) {
                (ListedTools::Searched, _) => offer.exposed(),
                (_, OfferVisibility::Live(exposed)) => Some(*exposed),
                (ListedTools::Known, OfferVisibility::Offered { known, .. }) => *known,
                _ => None,
            };
            if before.replace(offer.server()) != Some(offer.server()) {
                taken.clear();
            }
            let own = listed.map(|exposed| {
                let names = exposed.catalog.tools.iter().map(|tool| tool.name.as_str());
                let own = names.enumerate().filter(|(_, name)| {
                    // A server without toolsets has only one offer.
                    !offer.is_divided() || taken.insert(*name)
                });
                own.map(|(tool, _)| tool).collect()
            });
            ListedOffer { position, offer, visibility, tools: own.unwrap_or_default() }
        });
        offers.collect()
    }
}

impl<'a> ListedOffer<'a> {
    /// Returns the catalog of which the tools are listed, if they are.
    pub fn exposed(&self) -> Option<&'a ExposedCatalog> {
        match self.visibility {
            OfferVisibility::Live(exposed) => Some(exposed),
            OfferVisibility::Offered { known, .. } if !self.tools.is_empty() => known,
            OfferVisibility::Offered { .. } | OfferVisibility::Hidden => None,
        }
    }

    /// Returns the listed tools that an agent may see, by their positions in the catalog.
    pub fn for_model(&self) -> Vec<usize> {
        let for_model = self.exposed().map(|exposed| exposed.for_model.as_slice());
        let listed = |tool: &&usize| self.tools.binary_search(tool).is_ok();
        for_model.unwrap_or_default().iter().filter(listed).copied().collect()
    }

    fn as_whole_server(&self, tools: ListedTools) -> WholeServer {
        match self.visibility {
            OfferVisibility::Live(_) => WholeServer::Complete,
            OfferVisibility::Offered { .. } if tools == ListedTools::Known => WholeServer::Complete,
            OfferVisibility::Offered { .. } => WholeServer::Offered,
            OfferVisibility::Hidden if matches!(self.offer.presence, Presence::Evicted) => {
                WholeServer::Complete
            }
            OfferVisibility::Hidden => WholeServer::Hidden,
        }
    }
}

/// The appearance of a whole server in a list, on which that of its toolsets depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WholeServer {
    /// Its toolsets have nothing to add.
    Complete,
    Offered,
    Hidden,
}
