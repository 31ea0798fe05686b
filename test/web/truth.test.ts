/**
 * The figures of the console against traffic whose times, outcomes, tokens and costs are known, with a restart in between: each is computed
 * here from the list of requests, and read in Chromium by name and text.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { Locator, Page } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { formatDecimal } from "../../src/domain/decimal.ts"
import { keyId } from "../../src/domain/identity.ts"
import { compact, duration, exactMoney, money, number, percent } from "../../src/web/parts/format.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { untilValue } from "../support/until.ts"
import { adminOf, openSignedIn, settled, useBrowser, type Watched } from "./support.ts"
import { type Done, makeTraffic, planOf } from "./traffic.ts"

const minute = 60_000
const hour = 60 * minute

const keys = { "Mobile app": "key-of-the-app", "Night batch": "key-of-the-batch" } as const
type KeyName = keyof typeof keys
const keyNames = Object.keys(keys) as ReadonlyArray<KeyName>
const idOf = (name: KeyName): string => keyId(keys[name], sha256Hex)
const nameOf = ({ key }: Pick<Done, "key">): KeyName => keyNames.find((name) => keys[name] === key)!

const models = ["small", "large"]
/** What plans choose from. */
const of = { keys: Object.values(keys), models, pause: minute }
const currency = "EUR"
/** Prices of a million tokens by target. */
const prices = {
  "gpu/small": { input: 2, cached_input: 0.5, output: 6 },
  "gpu/large": { input: 10, cached_input: 1, output: 30 },
  "hosted/large": { input: 12, cached_input: 3, output: 40 }
} as const
/** The most requests at each upstream, and before it. */
const limits = {
  gpu: { max_inflight: 1, account_max_queue: 5 },
  hosted: { max_inflight: 7, account_max_queue: 9 }
} as const
const upstreamNames = Object.keys(limits) as ReadonlyArray<keyof typeof limits>
const serverModels = { gpu: ["vendor-small", "vendor-large"], hosted: ["hosted-large"] } as const

const browser = useBrowser()
const clock = makeMovedClock({ still: true, wall: Date.UTC(2026, 2, 10, 8, 12, 7) })
const now = () => clock.currentTimeMillisUnsafe()
const folder = mkdtempSync(path.join(tmpdir(), "truth-"))
let servers: { readonly gpu: OpenAiServer; readonly hosted: OpenAiServer }
let gateway: RunningGateway
let traffic: ReturnType<typeof makeTraffic>
let watched: Watched
let page: Page
/** All requests, and those since the restart: records and minutes are of these alone. */
let all: ReadonlyArray<Done>
let recent: ReadonlyArray<Done>
/** Those of the last five minutes. */
let late: ReadonlyArray<Done>
let restartedAt: number

const start = async (): Promise<void> => {
  const at = (name: keyof typeof servers) => ({
    driver: "openai",
    base_url: servers[name].baseUrl,
    models: Object.fromEntries(serverModels[name].map((model) => [model.split("-")[1]!, model]))
  })
  gateway = await startGateway({
    keys: Object.values(keys),
    key_records: Object.fromEntries(
      keyNames.map((name) => [idOf(name), { name, limits: [{ window: "day", cost: 50, requests: 1_000 }] }])
    ),
    upstreams: {
      gpu: { ...at("gpu"), ...limits.gpu, api_key: "k" },
      hosted: { ...at("hosted"), ...limits.hosted }
    },
    accounts: Array.from({ length: 5 }, (_, i) => ({ upstream: "hosted", token: `token-${i}`, disabled: i === 4 })),
    routes: { large: ["gpu/large", "hosted/large"] },
    currency,
    prices
  }, { clock, keepsUsage: true, environment: { GATEWAY_DATA_DIR: folder } })
}

/** What the bars of a chart say. */
const titlesIn = (chart: Locator): Promise<Array<string>> =>
  chart.locator(".bins > span").evaluateAll((bars) => bars.map((bar) => bar.getAttribute("title") ?? ""))

beforeAll(async () => {
  const [gpu, hosted] = await Promise.all([startOpenAiServer(), startOpenAiServer()])
  servers = { gpu, hosted }
  await start()
  traffic = makeTraffic({ clock, gateway: () => gateway, servers, models: serverModels })
  const served = { model: "large", end: "streamed" } as const
  const waits = { model: "small", end: "streamed" } as const
  const before = await traffic.play(planOf({
    ...of,
    count: 26,
    seed: 1,
    changes: {
      3: { ...served, refusals: [500] },
      // One account gets a 429 with the seconds to wait, another one a 401.
      9: { ...served, refusals: [500, 429] },
      24: { ...served, refusals: [500, 401] },
      12: waits,
      13: { ...waits, wait: 1_700 },
      16: { model: "nowhere", end: "refused" }
    }
  }))
  await gateway.stop()
  clock.move(2 * minute)
  restartedAt = now()
  await start()
  const early = await traffic.play(
    planOf({ ...of, count: 16, seed: 2, changes: { 4: { ...served, refusals: [500] } } })
  )
  // The tries of an upstream are those of five minutes.
  clock.move(10 * minute)
  late = await traffic.play(planOf({
    ...of,
    pause: 3_000,
    count: 14,
    seed: 3,
    changes: {
      2: { ...served, refusals: [500] },
      4: waits,
      5: { ...waits, wait: 2_300 },
      6: { ...waits, wait: 900 },
      8: { key: keys["Night batch"], model: "nowhere", end: "refused" },
      9: { key: keys["Mobile app"], end: "broken" },
      11: { end: "left" }
    }
  }))
  recent = [...early, ...late]
  all = [...before, ...recent]
  watched = await openSignedIn(browser(), gateway.url, "about", {
    timezoneId: "UTC",
    viewport: { width: 1600, height: 1000 }
  })
  page = watched.page
  await page.clock.setFixedTime(now())
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
  await Promise.all(Object.values(servers).map((server) => server.stop()))
  rmSync(folder, { recursive: true })
})

/** The traffic has ended: what a page has read before stays true. */
const open = async (route: string): Promise<void> => {
  await page.goto(`${gateway.url}/console/#/${route}`)
  await settled(page)
}

// What is computed from the traffic.

const isServed = ({ end }: Done): boolean => end === "streamed" || end === "whole" || end === "left"
const isOk = ({ end }: Done): boolean => end === "streamed" || end === "whole"
const isLeft = ({ end }: Done): boolean => end === "left"
const isFailed = ({ end }: Done): boolean => end === "broken" || end === "refused"
const isRefused = ({ end }: Done): boolean => end === "refused"
const isKnown = ({ model }: Done): boolean => model !== "nowhere"

const endOf = ({ at, duration }: Done): number => at + duration
const firstOf = (done: Done): number | undefined => isServed(done) ? done.queued + done.first : undefined
const upstreamOf = ({ tries }: Done): string | undefined => tries.at(-1)?.upstream
const targetOf = (done: Done) => isKnown(done) ? `${upstreamOf(done)!}/${done.model}` as keyof typeof prices : undefined
const codeOf = (done: Done): string | undefined =>
  done.end === "broken"
    ? "upstream_error"
    : !isRefused(done)
    ? undefined
    : isKnown(done)
    ? "invalid_request"
    : "model_not_found"

/** Nanos. A price of a million tokens is a thousand times that of one in nanos. */
const costOf = (done: Done): bigint => {
  const price = prices[targetOf(done)!]
  const { cached, completion, prompt } = done
  return isServed(done)
    ? BigInt(1_000 * ((prompt - cached) * price.input + cached * price.cached_input + completion * price.output))
    : 0n
}

/** The value that a share of values does not exceed. */
const quantile = (values: ReadonlyArray<number>, share: number): number | undefined =>
  values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * values.length)) - 1]

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

const sumsOf = (some: ReadonlyArray<Done>) => {
  const served = some.filter(isServed)
  const firsts = some.flatMap((done) => firstOf(done) ?? [])
  const streams = served.filter(({ duration, end, first, queued }) =>
    end !== "whole" && duration - queued - first >= 50
  )
  return {
    requests: some.length,
    ok: some.filter(isOk).length,
    failed: some.filter(isFailed).length,
    refused: some.filter(isRefused).length,
    left: some.filter(isLeft).length,
    prompt: sum(served.map(({ prompt }) => prompt)),
    completion: sum(served.map(({ completion }) => completion)),
    cached: sum(served.map(({ cached }) => cached)),
    cost: formatDecimal(some.reduce((total, done) => total + costOf(done), 0n)),
    first50: quantile(firsts, 0.5),
    first95: quantile(firsts, 0.95),
    duration95: quantile(some.map(({ duration }) => duration), 0.95),
    queued95: quantile(some.map(({ queued }) => queued), 0.95),
    rate50: quantile(
      streams.map(({ completion, duration, first, queued }) => completion * 1_000 / (duration - queued - first)),
      0.5
    ),
    tries: sum(some.map(({ tries }) => tries.length))
  }
}
type Sums = ReturnType<typeof sumsOf>

// How it is compared with what a page shows.

/** A number that is shown within 5 percent, rounded to the digits of its text. */
class Near {
  readonly exact: number | undefined
  constructor(exact: number | undefined) {
    this.exact = exact
  }
}
const near = (exact: number | undefined) => new Near(exact)

/** The milliseconds, or the number, of a text, and half of its last digit. */
const read = (text: string): readonly [value: number, half: number] => {
  const [, digits = "", unit = ""] = /^([\d.,]+)(?: (ms|s))?$/.exec(text) ?? []
  const decimals = digits.split(".")[1]?.length ?? 0
  const scale = unit === "s" ? 1_000 : 1
  return [Number(digits.replaceAll(",", "")) * scale, scale * 10 ** -decimals / 2]
}

const isNear = (text: string, { exact }: Near): boolean => {
  if (exact === undefined) return text === "–"
  const [value, half] = read(text)
  // Below a millisecond a time is within one.
  return Math.abs(value - exact) <= Math.max(1, exact * 0.05) + half
}

/** A share that is drawn: between two bounds, within what the browser rounds. */
class Drawn {
  readonly least: number
  readonly most: number
  constructor(least: number, most: number) {
    this.least = least
    this.most = most
  }
}

const rounding = 0.002

/** Bars of a strip, whose largest one has the full height; what there is has at least 3 percent of it. */
const stripOf = (values: ReadonlyArray<number>, most: number): ReadonlyArray<Drawn> =>
  values.map((value) =>
    value === 0 ? new Drawn(0, 0) : new Drawn(Math.max(0.03, value / most), Math.max(0.03, value / most))
  )

/** Bars of times, each within 5 percent, from 0 to three times the usual one, which is the lower median. */
const timeBarsOf = (times: ReadonlyArray<number | undefined>): ReadonlyArray<Drawn> => {
  const known = times.filter((time) => time !== undefined).sort((a, b) => a - b)
  const top = 3 * (known[Math.floor((known.length - 1) / 2)] ?? 1)
  return times.map((time) =>
    time === undefined
      ? new Drawn(0, 0)
      : new Drawn(Math.min(1, time * 0.95 / (top * 1.05)), Math.min(1, time * 1.05 / (top * 0.95)))
  )
}

type Wanted = string | Near | Drawn | ReadonlyArray<Wanted>

const fits = (found: unknown, wanted: Wanted): boolean =>
  wanted instanceof Near
    ? typeof found === "string" && isNear(found, wanted)
    : wanted instanceof Drawn
    ? typeof found === "number" && found >= wanted.least - rounding && found <= wanted.most + rounding
    : typeof wanted === "string"
    ? found === wanted
    : Array.isArray(found) && found.length === wanted.length && wanted.every((each, place) => fits(found[place], each))

/** Waits until the page shows what is computed. */
const shows = async (what: string, found: () => Promise<unknown>, wanted: Wanted): Promise<void> => {
  let last: unknown
  try {
    await untilValue(what, async () => (last = await found()), (value) => fits(value, wanted))
  } catch {
    assert.deepStrictEqual(last, wanted, what)
  }
}

const region = (name: string): Locator => page.getByRole("region", { name, exact: true })
const tableIn = (within: Locator | Page, name: string): Locator => within.getByRole("table", { name, exact: true })

/** The cells of the rows of a table, without that of the menu. An amount is followed by the exact one, which it has on hover. */
const cells = (table: Locator) => (): Promise<ReadonlyArray<ReadonlyArray<string>>> =>
  table.locator("tbody tr").evaluateAll(
    (rows, ending) =>
      rows.map((row) =>
        [...row.querySelectorAll("th, td:not(.tools)")].map((cell) => {
          const exact = cell.querySelector(`[title$="${ending}"]`)?.getAttribute("title")
          const text = (cell.textContent ?? "").replaceAll(/\s+/g, " ").trim()
          return exact ? `${text} (${exact})` : text
        })
      ),
    ` ${currency}`
  )

const figureOf = (within: Locator, name: string): Locator =>
  within.locator("a.figure").filter({ has: page.getByText(name, { exact: true }) })

/** The texts of a figure: its value, and what it is of. */
const figure = (within: Locator, name: string) => async (): Promise<ReadonlyArray<string>> => {
  const link = figureOf(within, name)
  const texts = [link.locator("strong"), link.locator(".hint").nth(1)].map((each) => each.textContent())
  return (await Promise.all(texts)).map((text) => text?.trim() ?? "")
}

/** How far the bars of a kind reach in a row of the strip of minutes: shares of its height. */
const reaches = (columns: Locator, row: string, kind: string) => (): Promise<ReadonlyArray<number>> =>
  columns.evaluateAll(
    (minutes, bar) =>
      minutes.map((minute) => {
        const style = minute.querySelector<HTMLElement>(bar)?.style
        return [style?.bottom, style?.height].reduce((sum, each) => sum + (Number.parseFloat(each ?? "") || 0), 0) / 100
      }),
    `.${row} > .${kind}`
  )

const share = (part: number, whole: number): string => part === 0 ? "0" : `${part} ${percent(part, whole)}`
const inTable = (amount: string): string => money(amount, null)

/** Groups of requests in the order of the most requests, then by tokens, then by name. */
const groupsBy = (some: ReadonlyArray<Done>, by: (done: Done) => string) =>
  [...Map.groupBy(some, by)].map(([name, own]) => ({ name, own, sums: sumsOf(own) }))

/** The cells of sums in the table of usage, behind the name. */
const usageCells = (sums: Sums): ReadonlyArray<Wanted> => [
  `${inTable(sums.cost)} (${exactMoney(sums.cost, currency)})`,
  number(sums.requests),
  share(sums.failed, sums.requests),
  number(sums.left),
  compact(sums.prompt),
  compact(sums.completion),
  percent(sums.cached, sums.prompt),
  near(sums.first50),
  near(sums.first95),
  near(sums.duration95),
  near(sums.queued95),
  near(sums.rate50),
  number(sums.tries)
]

const byCost = (a: { readonly sums: Sums }, b: { readonly sums: Sums }): number =>
  Number(b.sums.cost) - Number(a.sums.cost)

const byRequests = (a: { readonly sums: Sums }, b: { readonly sums: Sums }): number =>
  b.sums.requests - a.sums.requests || b.sums.prompt + b.sums.completion - a.sums.prompt - a.sums.completion

const timeOf = (at: number): string => new Date(at).toISOString().slice(11, 19)

/** The bars of a day show its hours, in words on hover and by their heights. */
const showsHours = async (what: string, row: Locator, some: ReadonlyArray<Done>): Promise<void> => {
  const end = Math.ceil(now() / hour) * hour
  const hours = Array.from({ length: 24 }, (_, place) => {
    const at = end - (24 - place) * hour
    const own = some.filter((done) => done.at >= at && done.at < at + hour)
    const day = new Date(at).getUTCDate() === new Date(now()).getUTCDate() ? "" : "9 Mar "
    return { name: `${day}${timeOf(at).slice(0, 5)}`, all: own.length, failed: own.filter(isFailed).length }
  })
  const most = Math.max(...hours.map(({ all }) => all))
  const links = row.getByRole("link")
  await shows(
    what,
    () => links.evaluateAll((all) => all.map((each) => (each.getAttribute("aria-label") ?? "").split("; ")[0])),
    hours.map(({ all, failed, name }) => `${name}: ${all} requests, ${failed} failed`)
  )
  const reach = (kind: string) => reaches(row.locator(".minute"), "stacked", kind)
  await shows(`${what}, drawn`, reach("ok"), stripOf(hours.map(({ all, failed }) => all - failed), most))
  await shows(`${what}, drawn failures`, reach("failed"), stripOf(hours.map(({ failed }) => failed), most))
}

describe("the figures of the console", () => {
  it("Usage: every row and the sums of all, by key, model, upstream and hour, over the restart", async () => {
    const groups: Readonly<Record<string, (done: Done) => string>> = {
      key: nameOf,
      model: (done) => isKnown(done) ? done.model : "not reached",
      upstream: (done) => upstreamOf(done) ?? "not reached",
      target: (done) => targetOf(done) ?? "not reached",
      hour: ({ at }) => `10 Mar 2026, ${timeOf(Math.floor(at / hour) * hour).slice(0, 5)}`
    }
    for (const [by, of] of Object.entries(groups)) {
      await open(`usage?by=${by}`)
      const rows = groupsBy(all, of)
      // The newest hour is first.
      const ordered = by === "hour" ? rows.toReversed() : rows.toSorted(byCost)
      await shows(`usage by ${by}`, cells(tableIn(page, "Usage")), [
        ...ordered.map(({ name, sums }) => [name, ...usageCells(sums)]),
        ["All", ...usageCells(sumsOf(all))]
      ])
    }
    const failed = all.filter(isFailed)
    const codes = groupsBy(failed, (done) => codeOf(done)!).toSorted((a, b) =>
      b.own.length - a.own.length || (a.name < b.name ? -1 : 1)
    )
    await shows(
      "errors",
      cells(tableIn(page, "Errors")),
      codes.map(({ name, own }) => [
        name,
        number(own.length),
        percent(own.length, all.length)
      ])
    )
    await open("usage?measure=cost")
    const legend = page.getByRole("group", { name: "Parts of the chart" }).getByRole("button")
    const parts = groupsBy(all, groups["model"]!).toSorted((a, b) => Number(b.sums.cost) - Number(a.sums.cost))
    await shows(
      "legend",
      () => legend.allTextContents(),
      parts.map(({ name, sums }) => `${name} ${money(sums.cost, currency)}`)
    )
  })

  it("Overview: the hour since the restart, and today over it", async () => {
    await open("overview")
    const hourly = region("Figures of the last hour")
    const sums = sumsOf(recent)
    const newest = Math.floor(now() / minute) * minute
    const minutes = Array.from({ length: 60 }, (_, place) => {
      const at = newest - (59 - place) * minute
      return { at, own: recent.filter((done) => endOf(done) >= at && endOf(done) < at + minute) }
    })
    const full = minutes.slice(0, -1).filter(({ at }) => at >= restartedAt).slice(-5)
    const rate = Math.round(sum(full.map(({ own }) => own.length)) / full.length * 10) / 10
    await shows("rate", figure(hourly, "Requests a minute"), [number(rate), `${recent.length} in the hour`])
    const failed = sums.failed - sums.refused
    await shows("succeeded", figure(hourly, "Succeeded"), [
      percent(sums.ok, sums.ok + failed),
      `${failed} failed · ${sums.refused} refused`
    ])
    await shows("first events", async () => {
      const [value = ""] = await figure(hourly, "First event, p50 · p95")()
      return value.split(" · ")
    }, [near(sums.first50), near(sums.first95)])
    const today = sumsOf(all)
    await shows("cost", figure(hourly, "Cost today"), [money(today.cost, currency), `${all.length} requests`])

    const tried = minutes.map(({ own }) => ({
      ok: own.filter(isOk).length,
      failed: own.filter((done) => isFailed(done) && !isRefused(done)).length
    }))
    const columns = page.locator(".minutes .minute")
    const largest = Math.max(...minutes.map(({ own }) => own.length))
    const shares = tried.map(({ failed, ok }) => failed / Math.max(1, ok + failed))
    const tokens = minutes.map(({ own }) => sumsOf(own)).map(({ completion, prompt }) => prompt + completion)
    await shows("those that succeeded", reaches(columns, "stacked", "ok"), stripOf(tried.map(({ ok }) => ok), largest))
    await shows("the share that failed", reaches(columns, "share", "failed"), stripOf(shares, Math.max(0.1, ...shares)))
    await shows(
      "first events of minutes",
      reaches(columns, "latency", "p95"),
      timeBarsOf(minutes.map(({ own }) => sumsOf(own).first95))
    )
    await shows("tokens", reaches(columns, "amount", "tokens"), stripOf(tokens, Math.max(...tokens)))

    await shows(
      "minutes",
      async () => {
        const links = page.getByRole("group", { name: "Minutes" }).getByRole("link")
        const names = await links.evaluateAll((all) => all.map((link) => link.getAttribute("aria-label") ?? ""))
        return names.map((name) => {
          const [, counts, p50, p95, tokens] = /^(.*); first event (.*), p95 (.*); (.*)$/.exec(name) ?? [name, name]
          return p50 === undefined ? counts : [counts, p50, p95, tokens]
        })
      },
      minutes.map(({ at, own }): Wanted => {
        if (at + minute <= restartedAt) return `Not counted: the gateway started at ${timeOf(restartedAt)}.`
        const { completion, failed, first50, first95, left, prompt, requests } = sumsOf(own)
        return [
          `${timeOf(at).slice(0, 5)}: ${requests} ${
            requests === 1 ? "request" : "requests"
          }, ${failed} failed, ${left} cancelled`,
          near(first50),
          near(first95),
          `${number(prompt + completion)} tokens`
        ]
      })
    )

    const attention = region("Needs attention").getByRole("listitem")
    for (const { name, own } of groupsBy(recent.filter(isFailed), (done) => codeOf(done)!)) {
      const row = attention.filter({ has: page.getByRole("link", { name, exact: true }) })
      await row.getByText(`${own.length} ${own.length === 1 ? "time" : "times"}`).waitFor()
      const ofCaller = [["for key", nameOf], ["for model", ({ model }: Done) => model]] as const
      const nouns = isRefused(own[0]!)
        ? ofCaller
        : [["at upstream", (done: Done) => upstreamOf(done)!] as const, ...ofCaller.toReversed()]
      const found = nouns.flatMap(([noun, of]) =>
        groupsBy(own.filter((done) => isKnown(done) || noun === "for key"), of).map(({ name, own: { length } }) => ({
          length,
          name,
          noun
        }))
      )
      const most = found.reduce((most, each) => each.length > most.length ? each : most)
      const part = most.length === own.length ? "" : `${percent(most.length, own.length)} of them `
      await row.getByText(`· ${part}${most.noun} ${most.name}`).waitFor()
    }

    const upstreams = upstreamNames.map((name) => {
      const tries = late.flatMap((done) => done.tries.map((each) => ({ ...each, done }))).filter((each) =>
        each.upstream === name
      )
      const errors = tries.filter(({ failed }) => failed).length
      const firsts = tries.flatMap(({ done, failed }) => failed ? [] : [done.first])
      return [
        name,
        number(Math.round(tries.length * 2) / 10),
        percent(errors, tries.length),
        near(quantile(firsts, 0.95)),
        `0 of ${limits[name].max_inflight}`,
        "0"
      ]
    })
    const rows = tableIn(region("Upstreams"), "Upstreams")
    await shows(
      "upstreams",
      async () =>
        (await cells(rows)()).map((
          [name, _, tries, errors, p95, , slots, waiting]
        ) => [name, tries, errors, p95, slots, waiting]),
      upstreams
    )
    // The bars of the hour are of the attempts since the restart.
    for (const name of upstreamNames) {
      const row = rows.getByRole("group", { name: `Attempts of ${name} in the last hour` })
      const tries = recent.flatMap((done) => done.tries.map((each) => ({ ...each, isRefused: done.end === "refused" })))
        .filter((each) => each.upstream === name)
      await shows(`the hour of ${name}`, async () => {
        const bars = (await titlesIn(row)).map((text) => text.match(/\d+/g)!.map(Number))
        return [2, 3].map((place) => String(sum(bars.map((numbers) => numbers[place]!))))
      }, [tries.length, tries.filter(({ failed, isRefused }) => failed && !isRefused).length].map(String))
    }

    const most = region("Most used today")
    const used = (by: (done: Done) => string) =>
      groupsBy(all.filter((done) => by === nameOf || isKnown(done)), by)
        .toSorted((a, b) => Number(b.sums.cost) - Number(a.sums.cost))
        .map((
          { name, sums }
        ) => [name, number(sums.requests), `${inTable(sums.cost)} (${exactMoney(sums.cost, currency)})`])
    await shows("keys of today", cells(tableIn(most, "Keys")), used(nameOf))
    await shows("models of today", cells(tableIn(most, "Models")), used(({ model }) => model))
  })

  it("Overview and Accounts: states that add up to all accounts, kept over the restart", async () => {
    // The upstream without accounts adds none. The refused account is out or ready, as its time passes.
    const { counts } = await adminOf(() => gateway)("/admin/accounts?sort=state") as {
      readonly counts: Readonly<Record<string, number>>
    }
    const { cooling = 0, disabled = 0, out = 0, ready = 0 } = counts
    assert.deepStrictEqual([cooling, disabled, ready + out, counts["all"]], [1, 1, 3, 5])
    const states = { Ready: ready, "Cooling down": cooling, "Out of rotation": out, Disabled: disabled }
    await open("overview")
    const pool = region("Pool").getByRole("listitem")
    await shows(
      "pool",
      async () => (await pool.allTextContents()).slice(0, 4).map((text) => text.replace(/^\W+/, "")),
      Object.entries(states).map(([name, count]) => `${count} ${name}`)
    )
    const failed = (await pool.last().textContent())?.replaceAll(/\D/g, "")
    await open("accounts")
    const chips = page.getByRole("group", { name: "Show" }).getByRole("button")
    await shows("accounts", async () => (await chips.allTextContents()).map((text) => text.replace(/^\W+/, "")), [
      "All5",
      ...Object.entries(states).map(([name, count]) => `${name}${count}`),
      `Test failed${failed}`
    ])
    for (const [name, count] of Object.entries(states)) {
      if (count === 0) continue
      await chips.filter({ hasText: name }).click()
      await shows(name, async () => String(await tableIn(page, "Accounts").locator("tbody tr").count()), String(count))
    }
  })

  it("Requests: each request since the restart, their counts by value and by time", async () => {
    await open("requests")
    const outcome = (done: Done): string =>
      isOk(done) ? "OK" : isLeft(done) ? "Cancelled" : `${codeOf(done)}${done.end === "broken" ? 503 : 400}`
    await shows(
      "requests",
      async () =>
        (await cells(tableIn(page, "Requests"))()).map(([time, outcome, model, key, answered, ...rest]) => [
          time,
          outcome,
          model,
          key,
          answered?.replace(/token:.*$/, "an account"),
          ...rest
        ]),
      recent.toSorted((a, b) => b.at - a.at).map((done) => {
        const first = firstOf(done)
        const cost = formatDecimal(costOf(done))
        const target = targetOf(done)
        return [
          `${timeOf(done.at)} ${done.id}`,
          outcome(done),
          done.model,
          nameOf(done),
          target === undefined ? "–" : target.startsWith("hosted") ? `${target}an account` : `${target}gpu`,
          first === undefined ? "–" : duration(first),
          duration(done.duration),
          isServed(done) ? compact(done.prompt) : "–",
          isServed(done) ? compact(done.completion) : "–",
          target === undefined ? "–" : `${inTable(cost)} (${exactMoney(cost, currency)})`
        ]
      })
    )
    await page.getByText(`1–${recent.length} of ${recent.length} · ${recent.length} requests kept`).waitFor()

    const { bucket_ms, buckets } = await adminOf(() => gateway)("/admin/requests/histogram") as {
      readonly bucket_ms: number
      readonly buckets: ReadonlyArray<{ readonly at: number }>
    }
    assert.isAtMost(buckets[0]!.at, recent[0]!.at)
    const failed = recent.filter(isFailed).length
    const name = new RegExp(`^${recent.length} requests from .*, ${failed} of them failed,`)
    await shows(
      "histogram",
      async () =>
        (await titlesIn(page.getByRole("group", { name }))).map((title) => {
          const [, counts, p95] = title.split("\n")
          return p95?.startsWith("p95 ") === true ? [counts, p95.replace("p95 ", "")] : counts
        }),
      buckets.map(({ at }): Wanted => {
        const own = recent.filter((done) => done.at >= at && done.at < at + bucket_ms)
        const counts = `${own.length} requests, ${own.filter(isFailed).length} failed`
        return own.length === 0 ? counts : [counts, near(sumsOf(own).duration95)]
      })
    )

    const filters = page.getByRole("group", { name: "Filters" })
    const facets: Readonly<Record<string, (done: Done) => string | undefined>> = {
      Outcome: (done) => isOk(done) ? "OK" : isLeft(done) ? "Cancelled" : "Failed",
      Error: codeOf,
      Model: ({ model }) => model,
      Key: nameOf,
      Upstream: upstreamOf
    }
    for (const [name, of] of Object.entries(facets)) {
      await filters.getByRole("button", { name, exact: true }).click()
      const values = filters.getByRole("group", { name, exact: true }).getByRole("listitem")
      const counted = groupsBy(recent.filter((done) => of(done) !== undefined), (done) => of(done)!)
      await shows(
        `facet ${name}`,
        async () => (await values.allTextContents()).toSorted(),
        counted.map(({ name, own }) => `${name}${own.length}`).toSorted()
      )
      await page.keyboard.press("Escape")
    }
  })

  it("Models: requests, cost and the time to the first event of a day", async () => {
    await open("models?sort=id&order=asc")
    await shows(
      "models",
      async () =>
        (await cells(tableIn(page, "Models"))()).map((
          [name, , , , , , , requests, cost, p95]
        ) => [name, requests, cost, p95]),
      ["large", "small"].map((model) => {
        const { cost, first95, requests } = sumsOf(all.filter((done) => done.model === model))
        return [model, number(requests), `${inTable(cost)} (${exactMoney(cost, currency)})`, near(first95)]
      })
    )
  })

  const day = async (own: ReadonlyArray<Done>) => {
    const { completion, cost, duration95, failed, first95, prompt, requests } = sumsOf(own)
    const day = region("Last 24 hours")
    await shows("requests", figure(day, "Requests"), [compact(requests), `${compact(prompt + completion)} tokens`])
    await shows("errors", figure(day, "Errors"), [percent(failed, requests), `${failed} failed`])
    await shows("times", async () => {
      const [duration = "", first = ""] = await figure(day, "Duration p95")()
      return [duration, first.replace("first event p95 ", "")]
    }, [near(duration95), near(first95)])
    await shows("cost", figure(day, "Cost"), [money(cost, currency), ""])
    await showsHours("hours", day.getByRole("group", { name: "Requests of each hour" }), own)
  }
  const touched = async (name: string, own: ReadonlyArray<Done>, by: (done: Done) => string | undefined) =>
    await shows(
      name,
      cells(tableIn(page, name)),
      groupsBy(own.filter((done) => by(done) !== undefined), (done) => by(done)!)
        .toSorted(byRequests)
        .map((
          { name, sums }
        ) => [name, number(sums.requests), `${inTable(sums.cost)} (${exactMoney(sums.cost, currency)})`])
    )
  const failures = async (own: ReadonlyArray<Done>) =>
    await shows(
      "last failures",
      async () =>
        (await cells(tableIn(page, "Last failures"))()).map(([time, code, model, key]) => [time, code, model, key]),
      own.filter(isFailed).toSorted((a, b) => b.at - a.at).slice(0, 10).map((done) => [
        timeOf(done.at),
        `${codeOf(done)} ${done.end === "broken" ? 503 : 400}`,
        done.model,
        nameOf(done)
      ])
    )

  it.each(keyNames)("the page of a key: its day, its limits, what it touched and its failures: %s", async (name) => {
    const own = all.filter((done) => nameOf(done) === name)
    await open(`keys/${idOf(name)}`)
    await day(own)
    await touched("Models", own, (done) => isKnown(done) ? done.model : undefined)
    await touched("Upstream", own, upstreamOf)
    await failures(recent.filter((done) => nameOf(done) === name))
    await shows("limits", region("Limits").locator(".hint").allTextContents.bind(region("Limits").locator(".hint")), [
      `${own.filter(isKnown).length} of 1,000 requests/day, resets 11 Mar 00:00`,
      `${money(sumsOf(own).cost, currency)} of €50/day, resets 11 Mar 00:00`
    ])
  })

  it.each(models)("the page of a model: its day, for whom, and its failures: %s", async (model) => {
    const own = all.filter((done) => done.model === model)
    await open(`models/${model}`)
    await day(own)
    await touched("Key", own, nameOf)
    await touched("Answered by", own, upstreamOf)
    await failures(recent.filter((done) => done.model === model))
  })

  it("Overview: slots in use and requests that wait, while requests are held open", async () => {
    const small = { key: keys["Mobile app"], model: "small", end: "streamed" } as const
    const large = { ...small, model: "large" }
    const waits = { ...small, wait: 0 }
    const changes = { 0: small, 1: large, 2: large, 3: waits, 4: waits, 5: waits }
    const release = await traffic.hold(planOf({ ...of, count: 6, seed: 4, changes }))
    const inUse = upstreamNames.map((name) => servers[name].requests.filter(({ outcome }) => outcome === "open").length)
    const rows = cells(tableIn(region("Upstreams"), "Upstreams"))
    const occupied = async () => (await rows()).map(([name, , , , , , slots, waiting]) => [name, slots, waiting])
    try {
      // The route takes the next target where the slots of the first one are in use.
      assert.deepStrictEqual(inUse, [1, 2])
      await open("overview")
      await page.reload()
      await shows("upstreams", occupied, [["gpu", "1 of 1", "3"], ["hosted", "2 of 7", "0"]])
      await shows("pool", () => region("Pool").locator(".pool-use a").allTextContents(), [
        "3 of 8 slots in use",
        "6 requests running"
      ])
      await shows("queue", () => region("Queue").locator("a").allTextContents(), ["3 of 14 waiting"])
      await shows(
        "those that wait",
        cells(tableIn(region("Queue"), "Queue")),
        Array.from({ length: 3 }, () => ["0 ms", "Chat Completions", "any"])
      )
    } finally {
      await release()
    }
    await page.reload()
    await shows("upstreams without requests", occupied, [["gpu", "0 of 1", "0"], ["hosted", "0 of 7", "0"]])
  })
})
