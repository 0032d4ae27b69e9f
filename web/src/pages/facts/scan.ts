// How far a list is read: until enough items match, enough were read, or none can match.

/** Whether an item matches; "end" if neither it nor any later item does. */
export type Matches<Item> = (item: Item) => boolean | "end";

const ITEMS_EACH_TIME = 50;
const PAGES_EACH_TIME = 10;

export function enough<Item>(
  pages: readonly Item[][],
  matches: Matches<Item> | undefined,
  times: number,
): { items: Item[]; ended: boolean; wantsMore: boolean } {
  const items: Item[] = [];
  let ended = false;
  for (const item of pages.flat()) {
    const fit = matches ? matches(item) : true;
    if (fit === "end") {
      ended = true;
      break;
    }
    if (fit) items.push(item);
  }
  const full = items.length >= ITEMS_EACH_TIME * times || pages.length >= PAGES_EACH_TIME * times;
  return { items, ended, wantsMore: pages.length > 0 && !ended && !full };
}
