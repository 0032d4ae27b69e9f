// A virtual list: only visible rows are rendered; rows may differ in height.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useRef, type ReactNode } from "react";

export interface VirtualListProps<Row> {
  label: string;
  rows: Row[];
  /** Must be stable: a new function makes the list measure all rows again. */
  rowKey: (row: Row, index: number) => string;
  render: (row: Row, index: number) => ReactNode;
  /** Estimated height of a row until it is rendered. */
  estimate: number;
  /** CSS height of the scrolling element. */
  height: string;
  onEnd?: () => void;
}

export function VirtualList<Row>({ label, rows, rowKey, render, estimate, height, onEnd }: VirtualListProps<Row>) {
  const scroll = useRef<HTMLDivElement>(null);
  const getItemKey = useCallback((index: number) => rowKey(rows[index] as Row, index), [rows, rowKey]);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => estimate,
    getItemKey,
    overscan: 8,
    onChange: (instance) => {
      const last = instance.getVirtualItems().at(-1);
      if (onEnd && last && last.index >= rows.length - 1) onEnd();
    },
  });
  return (
    <div ref={scroll} role="list" aria-label={label} tabIndex={0} style={{ height, overflowY: "auto", contain: "strict" }}>
      <div style={{ height: list.getTotalSize(), position: "relative" }}>
        {list.getVirtualItems().map((item) => (
          <div
            key={item.key}
            ref={list.measureElement}
            data-index={item.index}
            role="listitem"
            aria-setsize={rows.length}
            aria-posinset={item.index + 1}
            style={{ position: "absolute", top: 0, left: 0, width: "100%", transform: `translateY(${item.start}px)` }}
          >
            {render(rows[item.index] as Row, item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
