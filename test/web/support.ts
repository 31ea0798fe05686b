/**
 * The console in a real browser. Pages are watched for complaints and for requests to other origins.
 */
import { afterAll, assert, beforeAll } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { text } from "node:stream/consumers"
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import { isWhole } from "../support/effort.ts"
import { adminKey, type RunningGateway } from "../support/gateway.ts"
import { untilValue } from "../support/until.ts"
import { launch } from "./chromium.ts"
import { openTelling } from "./waits.ts"

export { launch } from "./chromium.ts"

/** A page with its context and complaints. */
export interface Watched {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors and warnings in its console, except for error responses. */
  readonly complaints: Array<string>
  /** Addresses of requests to other origins. */
  readonly foreign: Array<string>
  readonly close: () => Promise<void>
}

/** Whether a line is Chromium's own message about an error response, which tests may cause. */
const isRefusal = (text: string): boolean =>
  text.startsWith("Failed to load resource: the server responded with a status of")

/** Opens a page. Closing it asserts that it stayed within its origin and that its console is empty. */
export const open = async (browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> => {
  const context = await browser.newContext({ reducedMotion: "reduce", locale: "en-GB", ...options })
  const page = await openTelling(context)
  const complaints: Array<string> = []
  const foreign: Array<string> = []
  const { origin } = new URL(url)
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isRefusal(message.text())) complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(error.message))
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) foreign.push(request.url())
  })
  await page.goto(url)
  return {
    page,
    context,
    complaints,
    foreign,
    close: async () => {
      await context.close()
      assert.deepStrictEqual(complaints, [])
      assert.deepStrictEqual(foreign, [])
    }
  }
}

/** Signs in at the form. */
export const signIn = async (page: Page, key: string = adminKey): Promise<void> => {
  await page.getByRole("textbox", { name: "Admin key or password", exact: true }).fill(key)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("status", { name: "Connection" }).waitFor()
}

/** Shows the preferences and the way out, which are behind who is signed in. */
export const openPreferences = async (page: Page): Promise<void> => {
  const person = page.locator(".person > button")
  if (await person.getAttribute("aria-expanded") === "false") await person.click()
}

/** Opens the console at a route, signed in. */
export const openSignedIn = async (
  browser: Browser,
  gatewayUrl: string,
  route = "overview",
  options: BrowserContextOptions = {}
): Promise<Watched> => {
  const watched = await open(browser, `${gatewayUrl}/console/#/${route}`, options)
  await signIn(watched.page)
  return watched
}

/** What tests press on the page that is shown. */
export const controls = (page: () => Page) => {
  const button = (name: string) => page().getByRole("button", { name, exact: true })
  return {
    button,
    dialog: (name: string) => page().getByRole("dialog", { name }),
    field: (name: string) => page().getByRole("textbox", { name, exact: true }),
    /** Chooses an action of a row's menu in a table. */
    act: async (action: string, name: string, table: string): Promise<void> => {
      const rows = page().getByRole("table", { name: table, exact: true })
      await rows.getByRole("button", { name: `Actions ${name}`, exact: true }).click()
      await page().getByRole("menuitem", { name: action, exact: true }).click()
    }
  }
}

/** Calls the admin API of the gateway that runs, and reads the reply. */
export const adminOf =
  (gateway: () => RunningGateway) =>
  async (path: string, init: RequestInit = {}): Promise<Readonly<Record<string, unknown>>> => {
    const response = await fetch(gateway().url + path, { ...init, headers: { authorization: `Bearer ${adminKey}` } })
    return await response.json() as Readonly<Record<string, unknown>>
  }

/** Presses a button that saves a file: its name and its text. */
export const savedBy = async (
  page: Page,
  button: string
): Promise<{ readonly name: string; readonly content: string }> => {
  const saved = page.waitForEvent("download")
  await page.getByRole("button", { name: button, exact: true }).click()
  const file = await saved
  return { name: file.suggestedFilename(), content: await text(await file.createReadStream()) }
}

/** A browser for the tests of a file. */
export const useBrowser = (): () => Browser => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser.close())
  return () => browser
}

/** Waits until nothing on the page is loading. */
export const settled = (page: Page): Promise<void> =>
  page.waitForFunction(() => {
    const { document } = globalThis as unknown as {
      readonly document: { readonly querySelector: (selector: string) => unknown }
    }
    return document.querySelector(".loading, [aria-busy=true]") === null
  }).then(() => undefined)

/** Waits until a table has these rows in this order, each by the link, the code or else the text that it begins with. */
export const showsRows = async (page: Page, table: string, names: ReadonlyArray<unknown>): Promise<void> => {
  const wanted = JSON.stringify(names)
  await untilValue(
    `the rows of ${table} are ${wanted}`,
    () =>
      page.evaluate<ReadonlyArray<string>>(`[...document.querySelectorAll("table[aria-label='${table}'] tbody th")]
        .map((each) => (each.querySelector("a, code") ?? each).textContent)`),
    (shown) => JSON.stringify(shown) === wanted
  )
}

/** Goes to a page through its link in the navigation. */
export const goTo = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true }).click()
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor()
}

/** The outcome of the last action. */
export const result = (page: Page) => page.getByRole("status", { name: "Result" })

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary: string }>
}

/** Spans of a time line lie where their times are: two short ones cover each other. Everything else has room for its size. */
const isAvoidable = (id: string) => ({ html }: Violation["nodes"][number]): boolean =>
  id !== "target-size" || !html.includes(`class="span `)

/**
 * What axe finds on the page or in a part of it, one line each: rules of WCAG 2.0 to 2.2, levels A and AA, and best practices; or one
 * rule alone.
 */
export const findings = async (page: Page, part = "html", rule?: string): Promise<Array<string>> => {
  // The page's policy forbids inline scripts; it does not apply to the debugger. Parsing axe costs nearly as much as running it.
  if (!await page.evaluate("'axe' in globalThis")) await page.evaluate(axeSource)
  const violations = await page.evaluate(async ([selector, runOnly]) => {
    const { axe } = globalThis as unknown as {
      readonly axe: {
        readonly run: (part: string, options: object) => Promise<{ readonly violations: ReadonlyArray<Violation> }>
      }
    }
    return (await axe.run(selector!, {
      resultTypes: ["violations"],
      ...runOnly === undefined ? { rules: { "target-size": { enabled: true } } } : { runOnly }
    })).violations
  }, [part, rule])
  return violations.map(({ nodes, ...rest }) => ({ ...rest, nodes: nodes.filter(isAvoidable(rest.id)) }))
    .filter(({ nodes }) => nodes.length > 0)
    .map(({ id, nodes }) =>
      `${id}: ${nodes.map(({ failureSummary, html }) => `${html} ${failureSummary}`).join(" | ")}`
    )
}

/**
 * What axe finds in light, and in a whole run in dark too. Contrast is the rule that a theme decides, so in dark it alone is asked. Leaves the
 * page in dark.
 */
export const findingsOfThemes = async (page: Page, part?: string): Promise<Array<string>> => {
  await page.emulateMedia({ colorScheme: "light" })
  const light = await findings(page, part)
  await page.emulateMedia({ colorScheme: "dark" })
  return [...light, ...isWhole ? await findings(page, part, "color-contrast") : []]
}

/** The number of pixels by which a page is wider than its window. */
export const sideways = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { documentElement } = (globalThis as unknown as {
      readonly document: { readonly documentElement: { readonly scrollWidth: number; readonly clientWidth: number } }
    }).document
    return documentElement.scrollWidth - documentElement.clientWidth
  })
