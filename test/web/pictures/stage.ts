/**
 * Where pictures of the console are taken: a page with fixed data, fonts, clock and browser, and with the console of a gateway whose month is fixed.
 */
import { afterAll, beforeAll } from "@effect/vitest"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { pictureBrowser } from "../chromium.ts"
import { launch, settled } from "../support.ts"
import { openTelling } from "../waits.ts"
import { type FixedServer, startFixed } from "./server.ts"
import type { State } from "./states.ts"
import { now, shownHost, startFresh, startWorld, type World } from "./world.ts"

/** Without the browser that took the committed pictures, they are not compared. */
export const pinned = await pictureBrowser()

const origin = `http://${shownHost}`

/** The page on which a file takes its pictures. */
export interface Stage {
  readonly page: () => Page
  /** The gateway behind it. */
  readonly world: () => World
  /** Goes to a route of the console, and waits until it is drawn. */
  readonly goTo: (route: Route) => Promise<void>
  /** Loads the page of a state, and leads to the state. */
  readonly show: (state: State) => Promise<void>
}

/** The address of a page; that of a request is known when its record is. */
export type Route = string | ((world: World) => string)

const routeOf = (world: World, route: Route): string => typeof route === "string" ? route : route(world)

/** A stage for the tests of a file. */
export const useStage = (): Stage => {
  let browser: Browser
  let world: World
  let freshWorld: ReturnType<typeof startFresh> | undefined
  let fixed: FixedServer
  let context: BrowserContext
  let page: Page

  beforeAll(async () => {
    ;[browser, world] = await Promise.all([
      launch(pinned),
      startWorld()
    ])
    fixed = await startFixed(world)
    context = await browser.newContext({
      reducedMotion: "reduce",
      locale: "en-GB",
      timezoneId: "Europe/Berlin",
      deviceScaleFactor: 1,
      permissions: ["clipboard-read", "clipboard-write"],
      // Pages are of the same address in each run, whatever port the server has.
      proxy: { server: fixed.url, bypass: "<-loopback>" }
    })
    page = await openTelling(context)
    await page.clock.setFixedTime(now)
    await page.goto(`${origin}/console/#/about`)
  })

  afterAll(async () => {
    await context.close()
    await browser.close()
    fixed.stop()
    await Promise.all([world.stop(), freshWorld?.then(({ stop }) => stop())])
  })

  const inLanguage = async (language: "en" | "zh"): Promise<void> => {
    await page.evaluate(`localStorage.setItem("model-gateway.language", "${language}")`)
  }

  const goTo = async (route: Route): Promise<void> => {
    await page.goto(`${origin}/console/#/${routeOf(world, route)}`)
    await page.locator("h1").waitFor()
    await settled(page)
    await page.evaluate("document.fonts.ready")
  }

  const show = async ({ fresh = false, language = "en", open, replies = {}, route: of }: State): Promise<void> => {
    fixed.answer(replies, fresh ? await (freshWorld ??= startFresh()) : world)
    await inLanguage(language)
    await page.goto("about:blank")
    await page.goto(`${origin}/console/#/${routeOf(world, of)}`)
    await page.locator("h1").waitFor()
    if (!Object.values(replies).includes("held")) await settled(page)
    await page.mouse.move(0, 0)
    await open?.(page)
  }

  return { page: () => page, world: () => world, goTo, show }
}
