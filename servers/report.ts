// The table of tested servers in docs/servers/tested.md. A run replaces the rows of the servers and drivers that it has checked in full.
import { readFileSync, writeFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"
import path from "node:path"
import { code, type Row, table } from "../scripts/docs/table.ts"
import type { Driver, Result } from "./checks.ts"

const page = path.join(import.meta.dirname, "../docs/servers/tested.md")
const block = /^(<!-- made by `npm run test:servers` -->\n)([^]*?)^(<!-- end -->)$/m
const head: Row = [
  "server",
  "version",
  "tested on",
  "driver",
  "cases that hold",
  "what the server does not do",
  "faults"
]

/** The different values, in their order. */
const distinct = (values: ReadonlyArray<string>): string => [...new Set(values)].join("; ")

/** A row of results. */
export const rowOf = (server: string, version: string, driver: Driver, results: ReadonlyArray<Result>): Row => {
  const held = results.filter(({ fault, lacks }) => fault === undefined && lacks === undefined).length
  return [
    server,
    version,
    new Date().toISOString().slice(0, 10),
    code(driver),
    `${held} of ${results.length}`,
    distinct(results.flatMap(({ lacks }) => lacks === undefined ? [] : [lacks.split(": ")[0]!])),
    distinct(results.flatMap(({ api = "", check, fault }) => fault === undefined ? [] : [`${check} ${api}`.trim()]))
  ]
}

/** The rows of the table as it stands. */
const rowsIn = (text: string): ReadonlyArray<Row> =>
  text.split("\n").filter((line) => line.startsWith("| ")).slice(2)
    .map((line) => line.slice(2, -2).split(" | ").map((cell) => cell.trim()))

/** Puts rows into the table, in place of those of the same server and driver. */
export const writeRows = (rows: ReadonlyArray<Row>): void => {
  const text = readFileSync(page, "utf8")
  const keyOf = (row: Row) => `${row[0]} ${row[3]}`
  const kept = rowsIn(block.exec(text)?.[2] ?? "").filter((row) => !rows.some((own) => keyOf(own) === keyOf(row)))
  const all = [...kept, ...rows].toSorted((one, other) => keyOf(one).localeCompare(keyOf(other)))
  const gibibytes = Math.round(totalmem() / 2 ** 30)
  const machine = `On ${cpus().length} cores with ${gibibytes} GiB of memory, ${process.platform} ${process.arch}:`
  writeFileSync(
    page,
    text.replace(
      block,
      (_, start: string, _old, end: string) => `${start}\n${machine}\n\n${table(head, all)}\n\n${end}`
    )
  )
}
