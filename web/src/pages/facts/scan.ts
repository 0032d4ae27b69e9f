// How far a list is read: until enough items fit, or enough was looked at, or nothing more can fit.

/** Whether an item fits; "end" when neither it nor anything behind it does. */
export type Fits<Item> = (item: Item) => boolean | "end";

const ITEMS_EACH_TIME = 50;
const PAGES_EACH_TIME = 10;

export function enough<Item>(
  pages: readonly Item[][],
  fits: Fits<Item> | undefined,
  times: number,
): { items: Item[]; ended: boolean; wantsMore: boolean } {
  const items: Item[] = [];
  let ended = false;
  for (const item of pages.flat()) {
    const fit = fits ? fits(item) : true;
    if (fit === "end") {
      ended = true;
      break;
    }
    if (fit) items.push(item);
  }
  const full = items.length >= ITEMS_EACH_TIME * times || pages.length >= PAGES_EACH_TIME * times;
  return { items, ended, wantsMore: pages.length > 0 && !ended && !full };
}
