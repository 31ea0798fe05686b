/**
 * Where pictures of the console are taken: a page with fixed data, fonts, clock and browser, and with the console in front of fixed replies.
 */
import { afterAll, beforeAll } from "@effect/vitest"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { pictureBrowser } from "../chromium.ts"
import { launch, settled } from "../support.ts"
import { openTelling } from "../waits.ts"
import { now } from "./data.ts"
import { type FixedServer, startFixed } from "./server.ts"
import type { State } from "./states.ts"

/** Without the browser that took the committed pictures, they are not compared. */
export const pinned = await pictureBrowser()

/** The page on which a file takes its pictures. */
export interface Stage {
  readonly page: () => Page
  /** Goes to a route of the console, and waits until it is drawn. */
  readonly goTo: (route: string) => Promise<void>
  /** Loads the page of a state, and leads to the state. */
  readonly show: (state: State) => Promise<void>
}

/** A stage for the tests of a file. */
export const useStage = (): Stage => {
  let browser: Browser
  let gateway: RunningGateway
  let fixed: FixedServer
  let context: BrowserContext
  let page: Page

  beforeAll(async () => {
    ;[browser, gateway] = await Promise.all([
      launch(pinned),
      startGateway({
        upstreams: {
          local: {
            driver: "openai",
            base_url: "http://127.0.0.1:8001/v1",
            models: { "llama-3.3": { model: "llama-3.3" } },
            enabled: false
          },
          hosted: {
            driver: "messages",
            base_url: "https://models.example.com",
            models: { "claude-sonnet-4-5": { model: "claude-sonnet-4-5" } }
          }
        },
        accounts: [{ upstream: "local", token: "none" }, { upstream: "hosted", token: "a-token" }],
        routes: { "gpt-4o": { targets: ["local/llama-3.3", "hosted/claude-sonnet-4-5"] } },
        currency: "USD",
        prices: {
          "hosted/claude-sonnet-4-5": { input: 3, cached_input: 0.3, output: 15 },
          "llama-*": { input: 0.05 },
          "gpt-3": { per_request: "0.002" }
        },
        samples: { dir: "no-such-folder" }
      })
    ])
    fixed = await startFixed(gateway.url)
    context = await browser.newContext({
      reducedMotion: "reduce",
      locale: "en-GB",
      timezoneId: "Europe/Berlin",
      deviceScaleFactor: 1
    })
    page = await openTelling(context)
    await page.clock.setFixedTime(now)
    await page.goto(`${fixed.url}/console/#/about`)
  })

  afterAll(async () => {
    await context.close()
    await browser.close()
    fixed.stop()
    await gateway.stop()
  })

  const goTo = async (route: string): Promise<void> => {
    await page.goto(`${fixed.url}/console/#/${route}`)
    await page.locator("h1").waitFor()
    await settled(page)
    await page.evaluate("document.fonts.ready")
  }

  const show = async ({ open, replies = {}, route }: State): Promise<void> => {
    fixed.answer(replies)
    await page.goto("about:blank")
    await page.goto(`${fixed.url}/console/#/${route}`)
    await page.locator("h1").waitFor()
    if (!Object.values(replies).includes("held")) await settled(page)
    await page.mouse.move(0, 0)
    await open?.(page)
  }

  return { page: () => page, goTo, show }
}
