/** Tables of Markdown. */

/** The cells of a row. */
export type Row = ReadonlyArray<string>

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")

/** A table by its head and its rows. */
export const table = (head: Row, rows: ReadonlyArray<Row>): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n")

/** Text as code. */
export const code = (text: string): string => text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``
