// A table with clickable rows; on phones each row becomes a card.
import type { ReactNode } from "react";
import { useLocation } from "wouter";
import styles from "./table.module.css";

export interface Column<Row> {
  key: string;
  header: ReactNode;
  cell: (row: Row) => ReactNode;
  align?: "start" | "end";
  width?: string;
  /** The main column: on phones it comes first, the others small below it. */
  lead?: boolean;
  /** Hidden on phones. */
  wideOnly?: boolean;
}

export interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  /** Target of a click on the row; one cell needs a link as well, for the keyboard. */
  href?: (row: Row) => string;
}

export function Table<Row>({ label, columns, rows, rowKey, href }: TableProps<Row>) {
  const [, navigate] = useLocation();
  const open = (row: Row, target: EventTarget) => {
    if (!href || (target instanceof Element && target.closest("a,button,input,label"))) return;
    if (window.getSelection()?.toString()) return;
    navigate(href(row));
  };
  const hasLead = columns.some((column) => column.lead);
  return (
    <div className={styles["scroll"]} role="region" aria-label={label} tabIndex={0}>
      <table className={styles["table"]}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" style={{ width: column.width }} className={classOf(column)}>
                {column.header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} className={`${href ? styles["clickable"] : ""} ${hasLead ? styles["led"] : ""}`} onClick={(event) => open(row, event.target)}>
              {columns.map((column) => (
                <td key={column.key} className={classOf(column)} data-label={typeof column.header === "string" ? column.header : ""}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf<Row>(column: Column<Row>): string {
  return [column.align === "end" ? styles["end"] : "", column.wideOnly ? styles["wideOnly"] : "", column.lead ? styles["lead"] : ""].join(" ");
}
