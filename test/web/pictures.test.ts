/**
 * Pictures of every page, with fixed data, fonts, clock and browser, in both themes and three widths, compared with the committed ones.
 * Another platform or browser draws letters differently: there the comparison is skipped, and the run says so.
 *
 * `UPDATE_PICTURES=1` writes them anew: look at each changed one before it is committed. A picture that differs is written to
 * `node_modules/.cache/pictures`.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as Schema from "effect/Schema"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { AdminApi } from "../../src/server/OperatorApi.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { pictureBrowser } from "./chromium.ts"
import { accounts, keys, now } from "./pictures/data.ts"
import { fixedReply, startFixed, typefaces } from "./pictures/server.ts"
import { launch, settled } from "./support.ts"

const folder = path.join(import.meta.dirname, "pictures")
const differing = path.join(import.meta.dirname, "../../node_modules/.cache/pictures")
const updates = process.env["UPDATE_PICTURES"] === "1"

/** Without the browser that took the committed pictures, they are not compared. */
const pinned = await pictureBrowser()

const widths = [1440, 1024, 390] as const

/** Each picture's name with its address. */
const pages = [
  ["overview", "overview"],
  ["requests", "requests"],
  ["request-streamed", "requests/r3990"],
  ["request-failed", "requests/r3997"],
  ["usage", "usage"],
  ["usage-by-key", "usage?by=key"],
  ["playground", "playground"],
  ["keys", "keys"],
  ["key", `keys/${keys[0]!.id}`],
  ["models", "models"],
  ["model", "models/gpt-4o"],
  ["accounts", "accounts"],
  ["account", `accounts/${encodeURIComponent(accounts[0]!.identifier)}`],
  ["upstreams", "upstreams"],
  ["upstream", "upstreams/hosted"],
  ["routes", "routes"],
  ["settings", "settings"],
  ["webhooks", "webhooks"],
  ["transfer", "transfer"],
  ["changes", "changes"],
  ["samples", "samples"],
  ["about", "about"]
] as const

let browser: Browser
let gateway: RunningGateway
let fixed: Awaited<ReturnType<typeof startFixed>>
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
  context.setDefaultTimeout(200_000)
  page = await context.newPage()
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

interface DomNode {
  readonly nodeId: number
  readonly nodeType: number
  readonly nodeName: string
  readonly nodeValue: string
  readonly children?: ReadonlyArray<DomNode>
  readonly shadowRoots?: ReadonlyArray<DomNode>
  readonly pseudoElements?: ReadonlyArray<DomNode>
}

/** The elements of a document that draw text themselves, each with that text. */
const textElements = (node: DomNode): Array<{ readonly nodeId: number; readonly text: string }> => {
  const inner = [...node.children ?? [], ...node.shadowRoots ?? [], ...node.pseudoElements ?? []]
  const text = inner.filter(({ nodeType }) => nodeType === 3).map(({ nodeValue }) => nodeValue.trim()).join(" ")
  const drawn = text !== "" || node.nodeName.startsWith("::")
  return [...drawn ? [{ nodeId: node.nodeId, text: text || node.nodeName }] : [], ...inner.flatMap(textElements)]
}

/** The texts of the page that need a typeface of the machine, each with the typeface's name. */
const foreignText = async (): Promise<Array<string>> => {
  const session = await context.newCDPSession(page)
  await session.send("DOM.enable")
  await session.send("CSS.enable")
  const { root } = await session.send("DOM.getDocument", { depth: -1, pierce: true })
  const texts = await Promise.all(
    textElements(root as DomNode).map(async ({ nodeId, text }) => {
      const { fonts } = await session.send("CSS.getPlatformFontsForNode", { nodeId })
      return fonts.filter(({ isCustomFont }) => !isCustomFont).map(({ familyName }) => `"${text}" in ${familyName}`)
    })
  )
  await session.detach()
  return texts.flat()
}

/** The characters of the page without a glyph. A machine without fonts draws them all alike, in no typeface of its own. */
const missingGlyphs = (): Promise<Array<string>> =>
  page.evaluate((family) => {
    const { document, OffscreenCanvas: Canvas } = globalThis as unknown as {
      readonly document: { readonly body: { readonly innerText: string } }
      readonly OffscreenCanvas: new(width: number, height: number) => {
        readonly getContext: (kind: "2d", options: object) => {
          font: string
          readonly clearRect: (x: number, y: number, w: number, h: number) => void
          readonly fillText: (text: string, x: number, y: number) => void
          readonly getImageData: (x: number, y: number, w: number, h: number) => { readonly data: Uint8ClampedArray }
        }
      }
    }
    const canvas = new Canvas(64, 64).getContext("2d", { willReadFrequently: true })
    canvas.font = `32px ${family}`
    const drawn = (character: string) => {
      canvas.clearRect(0, 0, 64, 64)
      canvas.fillText(character, 8, 48)
      return canvas.getImageData(0, 0, 64, 64).data.join()
    }
    const missing = drawn("\u{10FFFD}")
    return [...new Set(document.body.innerText)].filter((character) => drawn(character) === missing)
  }, typefaces)

/** The elements that make the page wider than the window. */
const tooWide = `(({ clientWidth, scrollWidth }) => scrollWidth <= clientWidth ? [] :
  [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > clientWidth + 0.5)
    .map((each) => each.className + ": " + each.textContent.slice(0, 40)).slice(0, 20))(document.documentElement)`

/** The numbers and the filled fields that show less than they hold. */
const cutTexts =
  `[...document.querySelectorAll(".number, .number *, .figure strong, input:not([type=checkbox], [type=file])")]
  .filter((each) => each.checkVisibility() && each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.className + ": " + (each.value ?? each.textContent))`

/** The share of pixels of two pictures that differ visibly, from 0 to 1; 1 if their sizes differ. */
const difference = async (before: Buffer, after: Buffer): Promise<number> =>
  before.equals(after) ? 0 : page.evaluate(async ([a, b]) => {
    const read = async (text: string) => {
      const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
      const bitmap = await (globalThis as unknown as {
        readonly createImageBitmap: (blob: Blob) => Promise<{ readonly width: number; readonly height: number }>
      }).createImageBitmap(new Blob([bytes], { type: "image/png" }))
      const { OffscreenCanvas: Canvas } = globalThis as unknown as {
        readonly OffscreenCanvas: new(width: number, height: number) => {
          readonly getContext: (kind: "2d") => {
            readonly drawImage: (image: object, x: number, y: number) => void
            readonly getImageData: (x: number, y: number, w: number, h: number) => { readonly data: Uint8ClampedArray }
          }
        }
      }
      const canvas = new Canvas(bitmap.width, bitmap.height).getContext("2d")
      canvas.drawImage(bitmap, 0, 0)
      return { ...bitmap, width: bitmap.width, data: canvas.getImageData(0, 0, bitmap.width, bitmap.height).data }
    }
    const [first, second] = [await read(a!), await read(b!)]
    if (first.data.length !== second.data.length || first.width !== second.width) return 1
    let differ = 0
    for (let at = 0; at < first.data.length; at += 4) {
      const most = Math.max(
        Math.abs(first.data[at]! - second.data[at]!),
        Math.abs(first.data[at + 1]! - second.data[at + 1]!),
        Math.abs(first.data[at + 2]! - second.data[at + 2]!)
      )
      // Edges of letters differ a little between builds of the browser.
      if (most > 48) differ++
    }
    return differ / (first.data.length / 4)
  }, [before.toString("base64"), after.toString("base64")])

/** The share of pixels that may differ: less than a changed word on the smallest picture. */
const tolerated = 0.0005

const take = (): Promise<Buffer> => page.screenshot({ animations: "disabled", caret: "hide" })

/** How often a picture is taken until the page has drawn everything. */
const mostPictures = 30

/** A picture that is the same twice. */
const stablePicture = async (): Promise<Buffer> => {
  let last = await take()
  for (let taken = 1; taken < mostPictures; taken++) {
    const next = await take()
    if (next.equals(last)) break
    last = next
  }
  return last
}

/** The first picture that equals `committed`, or the last of many that do not. */
const closest = async (committed: Buffer): Promise<{ readonly picture: Buffer; readonly share: number }> => {
  let picture = await take()
  let share = await difference(committed, picture)
  for (let taken = 1; share > tolerated && taken < mostPictures; taken++) {
    const next = await take()
    if (next.equals(picture)) continue
    picture = next
    share = await difference(committed, picture)
  }
  return { picture, share }
}

describe("pictures of the console", () => {
  it("their fixed replies are of the contract", () => {
    const seen = new Set<string>()
    HttpApi.reflect(AdminApi, {
      onGroup: () => undefined,
      onEndpoint: ({ endpoint }) => {
        const of = endpoint.path.replace(":id", "r3997")
        if (endpoint.method !== "GET" || endpoint.path === "/admin/session") return
        const reply = fixedReply(of, new URLSearchParams("by=hour"))
        if (reply === undefined) return
        seen.add(of)
        const [success] = endpoint.success
        Effect.runSync(Schema.decodeUnknownEffect(success as Schema.Codec<unknown>)(reply))
      }
    })
    assert.isAtLeast(seen.size, 7)
  })

  it.each(pages)(
    "%s draws every character in the typefaces of the pictures, and cuts no number at three widths",
    async (_, route) => {
      await page.setViewportSize({ width: 1440, height: 900 })
      await goTo(route)
      assert.deepStrictEqual(await foreignText(), [])
      assert.deepStrictEqual(await missingGlyphs(), [])
      // The same page at each width: it is not wider than the window, and no number and no filled field is cut.
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        // A chart follows the width in the next frames.
        await page.waitForFunction(`${tooWide}.length === 0`, undefined, { timeout: 10_000 }).catch(() => undefined)
        assert.deepStrictEqual(await page.evaluate(tooWide), [], `at ${width}`)
        assert.deepStrictEqual(await page.evaluate(cutTexts), [], `at ${width}`)
      }
    }
  )

  describe.skipIf(pinned === undefined).each(pages)("%s", (name, route) => {
    it.each(["light", "dark"] as const)("looks as committed in %s at three widths", async (theme) => {
      await page.emulateMedia({ colorScheme: theme })
      const wrong: Array<string> = []
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        await goTo(route)
        await page.mouse.move(0, 0)
        const file = `${name}-${theme}-${width}.png`
        const committed = path.join(folder, file)
        if (updates || !existsSync(committed)) {
          mkdirSync(folder, { recursive: true })
          writeFileSync(committed, await stablePicture())
          if (!updates) wrong.push(`${file} was missing`)
          continue
        }
        const { picture, share } = await closest(readFileSync(committed))
        if (share <= tolerated) continue
        mkdirSync(differing, { recursive: true })
        writeFileSync(path.join(differing, file), picture)
        wrong.push(`${file}: ${(share * 100).toFixed(2)} % of the pixels differ`)
      }
      assert.deepStrictEqual(wrong, [])
    })
  })
})
