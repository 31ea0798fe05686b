/**
 * What the console asks, over a full gateway: 50,000 request records, 2,000 accounts and 500 keys. Milliseconds of a question, asked one
 * after the other.
 */
import { type Row, table } from "./table.ts"
import { callers, chat, effort, median, withTargets } from "./targets.ts"

const records = Math.round(50_000 * effort)
const accounts = 2_000
const keys = 500

/** Times that each question is asked. */
const asked = 15

/** The questions by what the console shows with them. */
const questions: ReadonlyArray<readonly [what: string, path: string]> = [
  ["Requests: the newest", "/admin/requests?limit=50"],
  ["Requests: the slowest", "/admin/requests?limit=50&sort=duration_ms&order=desc"],
  ["Requests: counts by outcome, model, key", "/admin/requests/facets"],
  ["Requests: histogram", "/admin/requests/histogram"],
  ["Overview: the hour", "/admin/minutes"],
  ["Usage: 30 days by model", "/admin/usage?by=model"],
  ["Keys: a page", "/admin/keys?limit=50"],
  ["Accounts: a page", "/admin/accounts?limit=50"],
  ["Models", "/admin/models"]
]

/** Prints how long each question takes. */
export const consoleBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const target = await targets.gateway("session", "as shipped", {
      config: {
        keys: ["bench-key", ...Array.from({ length: keys - 1 }, (_, i) => `bench-key-${i}`)],
        accounts: Array.from({ length: accounts }, (_, i) => ({ email: `bench${i}@example.com`, password: "bench" })),
        requests: { limit: 50_000, max_total_bytes: 1024 ** 3 }
      }
    })
    let left = records
    await callers(target, chat("!say short", false), 50, () => left-- > 0)
    const rows: Array<Row> = []
    for (const [what, path] of questions) {
      const times = []
      let bytes = 0
      for (let i = 0; i < asked; i++) {
        const from = performance.now()
        const response = await fetch(target.url + path, { headers: { authorization: "Bearer bench" } })
        const text = await response.text()
        if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`)
        times.push(performance.now() - from)
        bytes = text.length
      }
      rows.push([what, median(times), Math.max(...times), Math.round(bytes / 1000)])
    }
    const head = [`${records} records, ${accounts} accounts, ${keys} keys`, "ms, median", "ms, most", "kB"]
    process.stdout.write(`${table(head, rows)}\n`)
  })
