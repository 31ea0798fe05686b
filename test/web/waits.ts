/**
 * Waits for a page. One that ends without what it waits for says what was there instead: the address, the roles in sight, the last lines of
 * the page's console and its last requests.
 */
import type { BrowserContext, Page } from "playwright-core"

/** The longest wait for something on a page, in milliseconds. */
const mostMillis = 15_000

/** The longest load of a page, in milliseconds: it starts a process of the browser and runs all code of the page, which is work more than a wait. */
const mostLoadMillis = 60_000

/** How many of the last lines and requests a failure shows, and how many lines of roles. */
const [mostLines, mostRoles] = [10, 60]

/** The longest that the roles of a page that hangs are waited for. */
const rolesMillis = 2000

/** Describes what is on a page. */
const described = async (
  page: Page,
  lines: ReadonlyArray<string>,
  requests: ReadonlyArray<string>
): Promise<string> => {
  const roles = await page.locator("body").ariaSnapshot({ timeout: rolesMillis }).catch((reason: unknown) =>
    `cannot be read: ${String(reason)}`
  )
  const shown = (all: ReadonlyArray<string>): string => all.map((each) => `\n  ${each}`).join("") || " none"
  return [
    `address: ${page.url()}`,
    `roles in sight:${shown(roles.split("\n").slice(0, mostRoles))}`,
    `last lines of the console:${shown(lines)}`,
    `last requests:${shown(requests)}`
  ].join("\n")
}

/** The last values of a list that grows. */
const lastOf = (): { readonly all: ReadonlyArray<string>; readonly add: (value: string) => void } => {
  const all: Array<string> = []
  return { all, add: (value) => void all.splice(0, all.push(value) > mostLines ? 1 : 0) }
}

/** Whether a value waits itself: a page's part, or what finds one. */
const waits = (value: unknown): value is object =>
  typeof value === "object" && value !== null && "waitFor" in value && "getByRole" in value

/** The same page or locator, whose failed waits say what is there. */
const telling = <A extends object>(target: A, tell: () => Promise<string>): A =>
  new Proxy(target, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name, of)
      if (typeof value !== "function") return value
      return (...args: ReadonlyArray<unknown>): unknown => {
        const made: unknown = Reflect.apply(value, of, args)
        if (made instanceof Promise) {
          return made.catch(async (reason: unknown) => {
            if (reason instanceof Error && reason.name === "TimeoutError") reason.message += `\n${await tell()}`
            throw reason
          })
        }
        return waits(made) ? telling(made, tell) : made
      }
    }
  })

/** Opens a page whose waits are bounded, and say what is there when they end without success. */
export const openTelling = async (context: BrowserContext): Promise<Page> => {
  context.setDefaultTimeout(mostMillis)
  context.setDefaultNavigationTimeout(mostLoadMillis)
  const page = await context.newPage()
  const lines = lastOf()
  const requests = lastOf()
  page.on("console", (message) => lines.add(`${message.type()}: ${message.text()}`))
  page.on("pageerror", (error) => lines.add(`thrown: ${error.message}`))
  page.on(
    "response",
    (response) => requests.add(`${response.request().method()} ${response.url()} ${response.status()}`)
  )
  page.on(
    "requestfailed",
    (request) => requests.add(`${request.method()} ${request.url()} failed: ${request.failure()?.errorText ?? ""}`)
  )
  return telling(page, () => described(page, lines.all, requests.all))
}
