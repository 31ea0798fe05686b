/**
 * The cost of a request in Effect primitives and fibers, counted as in the tests. Independent of the machine.
 */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { type Row, table } from "./table.ts"

const line = /through the (\w+) driver costs no more than > its budget, (.*): (\{.*\})$/

/** Prints the table. */
export const countsBench = async (): Promise<void> => {
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "test/hotPath"], {
    env: { ...process.env, COUNTS: "1", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const rows: Array<Row> = []
  for await (const text of createInterface({ input: child.stdout })) {
    const found = line.exec(text)
    if (found === null) continue
    const { fibers, primitives } = JSON.parse(found[3]!) as { readonly primitives: number; readonly fibers: number }
    rows.push([`${found[1]} driver, ${found[2]}`, primitives, fibers])
  }
  process.stdout.write(`${table(["", "primitives", "fibers"], rows)}\n`)
}
