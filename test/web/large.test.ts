/**
 * What the pages of the console ask of a gateway with 2,000 accounts and 500 keys: requests and bytes, which do not grow with the
 * accounts. The configuration alone has a line for each key.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Request, Response } from "playwright-core"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { goTo, open, settled, signIn, useBrowser } from "./support.ts"

const accounts = Array.from({ length: 2_000 }, (_, i) => ({ email: `account-${i}@example.com`, password: "p" }))
const keys = Array.from({ length: 500 }, (_, i) => `key-number-${i}`)

const browser = useBrowser()
let small: RunningGateway
let large: RunningGateway
beforeAll(async () => {
  small = await startGateway({ accounts: accounts.slice(0, 60), keys: keys.slice(0, 60) })
  large = await startGateway({ accounts, keys })
})
afterAll(async () => {
  await small.stop()
  await large.stop()
})

/** The bytes of replies by their address: what a page reads again counts once. */
type Asked = Map<string, number>

/** A read without the moments of its range, which are others when a page reads once more. */
const readOf = (url: string): string => {
  const read = new URL(url)
  for (const moment of ["from", "to"]) read.searchParams.delete(moment)
  return read.href
}

const bytesOf = (asked: Asked): number => [...asked.values()].reduce((sum, bytes) => sum + bytes, 0)

/** Opens each page through the navigation. Returns what it asked of the gateway. */
const pagesOf = async (gateway: RunningGateway): Promise<ReadonlyMap<string, Asked>> => {
  const { close, page } = await open(browser(), `${gateway.url}/console/#/about`)
  // The stream of events does not end.
  const isEvents = (url: string) => new URL(url).pathname === "/admin/events"
  const waiting = new Set<Request>()
  let wake = () => {}
  const end = (request: Request) => {
    waiting.delete(request)
    wake()
  }
  page.on("request", (request) => isEvents(request.url()) || waiting.add(request))
  page.on("requestfailed", end)
  page.on("requestfinished", end)
  /** Waits until the page neither loads nor asks. */
  const quiet = async () => {
    await settled(page)
    while (waiting.size > 0) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      await settled(page)
    }
  }
  await signIn(page, adminKey)
  // What every page needs, such as the keys that the navigation counts, is read before the first one.
  await quiet()
  const found = new Map<string, Asked>()
  for (const name of ["Overview", "Requests", "Usage", "Keys", "Models", "Upstreams", "Accounts", "Routes"]) {
    const asked: Asked = new Map()
    const bodies: Array<Promise<void>> = []
    const count = (response: Response) => {
      if (!new URL(response.url()).pathname.startsWith("/admin/") || isEvents(response.url())) return
      bodies.push(response.body().then((body) => void asked.set(readOf(response.url()), body.length)))
    }
    page.on("response", count)
    await goTo(page, name)
    await quiet()
    page.off("response", count)
    await Promise.all(bodies)
    found.set(name, asked)
  }
  await close()
  return found
}

it("console: a page asks as much of a large gateway as of a small one", async () => {
  const [few, many] = [await pagesOf(small), await pagesOf(large)]
  assert.isAtLeast([...many.values()].filter(({ size }) => size > 0).length, 5)
  for (const [name, asked] of many) {
    const least = few.get(name)!
    assert.isAtMost(asked.size, least.size + 2, name)
    // Numbers have more digits, and lists of names for filters are longer.
    assert.isAtMost(bytesOf(asked), bytesOf(least) * 1.5 + 20_000, `${name}: ${JSON.stringify([...asked])}`)
  }
})
