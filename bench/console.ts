/**
 * The console over a full gateway: 50,000 request records, 2,000 accounts and 500 keys. Milliseconds of each question that it asks, one after
 * the other, and of each page until nothing on it loads, with the tasks that keep the page from answering.
 */
import { goTo, launch, settled, signIn } from "../test/web/support.ts"
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

/** The pages by their names in the navigation. */
const pages = ["Overview", "Requests", "Usage", "Keys", "Models", "Upstreams", "Accounts", "Routes"]

/** Times that each page is opened: the first time its code is loaded too. */
const opened = 5

/** Keeps the milliseconds of each task of more than 50: what the browser calls a long one. */
const watchTasks = `globalThis.longTasks = []
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) globalThis.longTasks.push(duration)
}).observe({ type: "longtask", buffered: true })`

/** Opens each page in Chromium. */
const openPages = async (url: string): Promise<ReadonlyArray<Row>> => {
  const browser = await launch()
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    await page.addInitScript(watchTasks)
    await page.goto(`${url}/console/#/about`)
    await signIn(page, "bench")
    const times = new Map<string, Array<number>>(pages.map((name) => [name, []]))
    const tasks = new Map<string, Array<number>>(pages.map((name) => [name, []]))
    await settled(page)
    await page.evaluate("globalThis.longTasks.splice(0)")
    for (let i = 0; i < opened; i++) {
      for (const name of pages) {
        const from = performance.now()
        await goTo(page, name)
        await settled(page)
        times.get(name)!.push(performance.now() - from)
        tasks.get(name)!.push(...await page.evaluate("globalThis.longTasks.splice(0)") as ReadonlyArray<number>)
      }
    }
    return pages.map((name): Row => [
      name,
      median(times.get(name)!),
      Math.max(...times.get(name)!),
      tasks.get(name)!.length,
      Math.max(0, ...tasks.get(name)!)
    ])
  } finally {
    await browser.close()
  }
}

/** Prints how long each question and each page takes. */
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
    const pageHead = [`${opened} times each`, "ms, median", "ms, most", "tasks above 50 ms", "ms, longest"]
    process.stdout.write(`${table(pageHead, await openPages(target.url))}\n`)
  })
