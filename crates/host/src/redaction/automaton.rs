//! An Aho–Corasick automaton: searches for many texts at once, one step per byte.
//!
//! Invariant: the current node is the longest suffix of the input that is a prefix of one of the texts.

use std::collections::VecDeque;

pub(super) const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;

/// The meaning of a text of the automaton.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needle<'a> {
    /// All of it is secret; a prefix of this many bytes reveals nothing and is not held back.
    Secret(&'a [u8], u32),
    /// The prefix of the pattern with this number: what follows may be secret.
    Prefix(&'a [u8], u16),
}

/// A prefix of one or more texts.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The failure link: the next shorter suffix that is a prefix of a text.
    fail: u32,
    /// The successor of every byte, for nodes with several children; else there is one child.
    row: u32,
    next: u32,
    byte: u8,
    /// How many bytes at the end of the input may be the beginning of a secret.
    pub(super) hold: u32,
    /// The length of the longest secret that ends here; 0: none.
    pub(super) secret: u32,
    /// The pattern whose prefix ends here.
    pub(super) prefix: Option<u16>,
}

pub(super) struct Automaton {
    nodes: Vec<Node>,
    rows: Vec<[u32; 256]>,
    /// A bit set over hashes of the first three bytes of each text.
    beginnings: Box<[u64; 1024]>,
}

impl Automaton {
    pub(super) fn new(needles: &[Needle<'_>]) -> Self {
        let mut trie = Trie::default();
        let mut beginnings = Box::new([0; 1024]);
        for needle in needles {
            let (Needle::Secret(text, _) | Needle::Prefix(text, _)) = needle;
            let [first, second, third, ..] = text else { continue };
            let hash = hash(*first, *second, *third);
            beginnings[hash / 64] |= 1 << (hash % 64);
            trie.add(*needle);
        }
        trie.link();
        trie.into_automaton(beginnings)
    }

    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(super) fn step(&self, node: u32, byte: u8) -> u32 {
        step(&self.nodes, &self.rows, node, byte)
    }

    /// The first position from `at` on where a text may begin; the last two bytes always may, since what
    /// follows them is unknown.
    pub(super) fn skip(&self, bytes: &[u8], at: usize) -> usize {
        let begins = |window: &[u8]| {
            let hash = hash(window[0], window[1], window[2]);
            self.beginnings[hash / 64] & (1 << (hash % 64)) != 0
        };
        let rest = &bytes[at..];
        let unknown = at.max(bytes.len().saturating_sub(2));
        rest.windows(3).position(begins).map_or(unknown, |skipped| at + skipped)
    }
}

/// Sixteen bits that depend on all three bytes.
fn hash(first: u8, second: u8, third: u8) -> usize {
    let bytes = u32::from_le_bytes([first, second, third, 0]);
    (bytes.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

/// The automaton while it is built: a trie of the texts.
struct Trie {
    nodes: Vec<Node>,
    ways: Vec<Vec<(u8, u32)>>,
    depths: Vec<u32>,
    /// Parents before children.
    order: Vec<u32>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![EMPTY], ways: vec![Vec::new()], depths: vec![0], order: Vec::new() }
    }
}

const EMPTY: Node =
    Node { fail: ROOT, row: NONE, next: NONE, byte: 0, hold: 0, secret: 0, prefix: None };

impl Trie {
    fn add(&mut self, needle: Needle<'_>) {
        let (Needle::Secret(text, _) | Needle::Prefix(text, _)) = needle;
        let length = u32::try_from(text.len()).unwrap_or(NONE);
        let mut node = ROOT;
        for byte in text {
            // All but the last node of a secret may go on to be one: `hold` is its depth.
            let depth = self.depths[node as usize];
            if matches!(needle, Needle::Secret(_, shown) if depth > shown) {
                self.nodes[node as usize].hold = depth;
            }
            node = match self.way(node, *byte) {
                Some(next) => next,
                None => self.grow(node, *byte),
            };
        }
        let last = &mut self.nodes[node as usize];
        match needle {
            Needle::Secret(..) => last.secret = length,
            Needle::Prefix(_, pattern) => last.prefix = Some(pattern),
        }
    }

    fn way(&self, node: u32, byte: u8) -> Option<u32> {
        let ways = self.ways[node as usize].iter();
        ways.clone().find(|(other, _)| *other == byte).map(|(_, next)| *next)
    }

    fn grow(&mut self, parent: u32, byte: u8) -> u32 {
        let node = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        self.nodes.push(EMPTY);
        self.ways.push(Vec::new());
        self.depths.push(self.depths[parent as usize] + 1);
        self.ways[parent as usize].push((byte, node));
        node
    }

    /// Sets the failure link of every node and merges what that node knows.
    fn link(&mut self) {
        let mut queue = VecDeque::from([ROOT]);
        while let Some(node) = queue.pop_front() {
            self.order.push(node);
            for (byte, child) in self.ways[node as usize].clone() {
                let fail = if node == ROOT { ROOT } else { self.fail_of(node, byte) };
                let known = self.nodes[fail as usize].clone();
                let here = &mut self.nodes[child as usize];
                here.fail = fail;
                if here.hold == 0 {
                    here.hold = known.hold;
                }
                here.secret = here.secret.max(known.secret);
                here.prefix = here.prefix.or(known.prefix);
                queue.push_back(child);
            }
        }
    }

    fn fail_of(&self, parent: u32, byte: u8) -> u32 {
        let mut node = self.nodes[parent as usize].fail;
        loop {
            match self.way(node, byte) {
                Some(next) => return next,
                None if node == ROOT => return ROOT,
                None => node = self.nodes[node as usize].fail,
            }
        }
    }

    /// Tables for nodes near the root or with several children; long tails have none.
    fn into_automaton(mut self, beginnings: Box<[u64; 1024]>) -> Automaton {
        let mut rows: Vec<[u32; 256]> = Vec::new();
        for node in self.order {
            let ways = &self.ways[node as usize];
            if let [(byte, next)] = ways[..]
                && self.depths[node as usize] > 1
            {
                let here = &mut self.nodes[node as usize];
                (here.byte, here.next) = (byte, next);
                continue;
            }
            if ways.is_empty() {
                // Its successors are those of its failure link.
                continue;
            }
            let mut row = [ROOT; 256];
            if node != ROOT {
                for (byte, next) in (0..=u8::MAX).zip(&mut row) {
                    *next = step(&self.nodes, &rows, self.nodes[node as usize].fail, byte);
                }
            }
            for (byte, next) in ways {
                row[usize::from(*byte)] = *next;
            }
            self.nodes[node as usize].row = u32::try_from(rows.len()).unwrap_or(NONE);
            rows.push(row);
        }
        if rows.is_empty() {
            self.nodes[ROOT as usize].row = 0;
            rows.push([ROOT; 256]);
        }
        Automaton { nodes: self.nodes, rows, beginnings }
    }
}

fn step(nodes: &[Node], rows: &[[u32; 256]], mut node: u32, byte: u8) -> u32 {
    loop {
        let here = &nodes[node as usize];
        if here.row != NONE {
            return rows[here.row as usize][usize::from(byte)];
        }
        if here.byte == byte && here.next != NONE {
            return here.next;
        }
        node = here.fail;
    }
}
