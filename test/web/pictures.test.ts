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
import type { Browser, BrowserContext, Page } from "playwright-core"
import { AdminApi } from "../../src/server/OperatorApi.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilValue } from "../support/until.ts"
import { pictureBrowser } from "./chromium.ts"
import { compare } from "./pictures/camera.ts"
import { accountNames, keys, now } from "./pictures/data.ts"
import { fixedReply, type FixedServer, startFixed, typefaces } from "./pictures/server.ts"
import { editLongKey, longReplies, type State, states } from "./pictures/states.ts"
import { findingsOfThemes, launch, settled } from "./support.ts"
import { lowControls, smallTargets } from "./targets.ts"

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
  ["account", `accounts/${encodeURIComponent(accountNames[0]!)}`],
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

/** Loads the page of a state, and leads to the state. */
const show = async ({ open, replies = {}, route }: State): Promise<void> => {
  fixed.answer(replies)
  await page.goto("about:blank")
  await page.goto(`${fixed.url}/console/#/${route}`)
  await page.locator("h1").waitFor()
  if (!Object.values(replies).includes("held")) await settled(page)
  await page.mouse.move(0, 0)
  await open?.(page)
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

/** The page is not wider than the window. A chart follows a width in the next frames. */
const fits = (where: string) =>
  untilValue(`nothing is too wide ${where}`, () => page.evaluate<Array<string>>(tooWide), (wide) => wide.length === 0)

/** The numbers and the filled fields that show less than they hold. */
const cutNumbers = `(() => {
  const isCut = (each) => {
    if (each.tagName !== "SELECT") return each.scrollWidth > each.clientWidth + 1
    // A choice has the width of its text where it may take it.
    const alone = each.parentElement.appendChild(document.createElement("select"))
    alone.append(new Option(each.selectedOptions[0]?.text ?? ""))
    alone.style.cssText = "position: absolute; width: auto; min-width: 0; font: inherit"
    const width = alone.offsetWidth
    alone.remove()
    return width > each.offsetWidth + 1
  }
  return [...document.querySelectorAll(
    ".number, .number *, .figure strong, input:not([type=checkbox], [type=file]), select"
  )].filter((each) => each.checkVisibility() && each.clientWidth > 0 && isCut(each))
    .map((each) => each.className + ": " + (each.value ?? each.textContent))
})()`

/** The texts that are cut, each with what is missing: a sign that it is cut, or its whole text under the pointer or on focus. */
const unsaidTexts = `(() => {
  const isCut = (each) => {
    const { overflowX } = getComputedStyle(each)
    return each.checkVisibility() && each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1 &&
      (overflowX === "hidden" || overflowX === "clip") && each.textContent.trim() !== ""
  }
  const texts = [...document.querySelectorAll("body *:not(.sr-only, .sr-only *, .whole)")].filter(isCut)
    .filter((each) => !each.querySelector(".middle"))
  return texts.flatMap((each) => {
    const whole = (each.closest(".middle") ?? each).textContent.trim()
    each.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))
    const isPointed = each.closest("[title]")?.title.includes(whole) === true
    const row = each.closest("tr, li, .lane") ?? each
    const controls = "a[href]:not([tabindex='-1']), button:enabled:not([tabindex='-1']), summary, [tabindex='0']"
    const control = each.closest(controls) ?? row.querySelector(controls)
    control?.focus({ preventScroll: true })
    const said = document.querySelector(".whole:popover-open")?.textContent ?? ""
    control?.blur()
    return [
      ...getComputedStyle(each).textOverflow === "ellipsis" ? [] : ["no sign: "],
      ...isPointed ? [] : ["no title: "],
      ...said.includes(whole) ? [] : [(control === null ? "no control" : "no text") + " on focus: "]
    ].map((what) => what + each.tagName + "." + each.className + " " + whole.slice(0, 60))
  })
})()`

/**
 * What a table does not show where it stands: the cells that name its rows, its menus and the text of an empty one beyond its edges; of the
 * list of a page in a narrow window every text beyond them; and texts that an edge cuts. A cell puts dots on its own line alone, not on the
 * lines of what stands in it.
 */
const outOfTables = `(() => {
  const isSeen = (each) => each.checkVisibility() && each.closest(".sr-only, [popover]") === null
  const isOver = (rect, edge) => rect.right > edge.right + 1 || rect.left < edge.left - 1
  const isCutBy = (each) => ["hidden", "clip"].includes(getComputedStyle(each).overflowX)
  const rectsOf = (text) => {
    const range = document.createRange()
    range.selectNodeContents(text)
    return [...range.getClientRects()]
  }
  const hasDots = (parent, edge) => {
    let line = parent
    while (getComputedStyle(line).display === "inline") line = line.parentElement
    return line === edge && getComputedStyle(edge).textOverflow === "ellipsis"
  }
  const heading = document.querySelector("h1").textContent
  return [...document.querySelectorAll("main .table-box")].flatMap((box) => {
    const edge = box.getBoundingClientRect()
    const isList = innerWidth < 700 && box.ariaLabel === heading
    const found = [...box.querySelectorAll("tbody th, tr > :first-child, [aria-haspopup=menu]")]
      .filter((each) => isSeen(each) && isOver(each.getBoundingClientRect(), edge))
      .map((each) => "out of sight: " + (each.textContent || each.ariaLabel))
    const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT)
    for (let text = walk.nextNode(); text; text = walk.nextNode()) {
      const parent = text.parentElement
      if (text.data.trim() === "" || !isSeen(parent)) continue
      const rects = rectsOf(text)
      let around = parent
      while (around !== box && !(isCutBy(around) && rects.some((rect) => isOver(rect, around.getBoundingClientRect())))) {
        around = around.parentElement
      }
      if (around === box ? isList && rects.some((rect) => isOver(rect, edge)) : !hasDots(parent, around)) {
        found.push("cut: " + text.data)
      }
    }
    return found.map((each) => box.ariaLabel + ": " + each.slice(0, 60))
  })
})()`

/**
 * What does not use its room: a dialog's part that scrolls sideways, a hint of a field that is cut, a button to copy that stands below what
 * it copies, and in a narrow window fields that end before the fields above them.
 */
const badlyPlaced = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility())
  const pen = document.createElement("canvas").getContext("2d")
  const isHintCut = (each) => {
    const { fontFamily, fontSize, fontWeight, paddingLeft, paddingRight } = getComputedStyle(each)
    pen.font = fontWeight + " " + fontSize + " " + fontFamily
    return pen.measureText(each.placeholder).width > each.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) + 1
  }
  const isBelow = (each) => each.getBoundingClientRect().top >= each.previousElementSibling.getBoundingClientRect().bottom - 1
  const endsEarly = (row) => {
    const fields = [...row.children].filter((each) => each.matches(".field"))
    const others = [...row.children].filter((each) => !each.matches(".field"))
    const boxes = fields.map((each) => (each.querySelector("select") ?? each).getBoundingClientRect())
    const isAlone = ({ bottom, top }) => others.every((each) => {
      const other = each.getBoundingClientRect()
      return other.top >= bottom || other.bottom <= top
    })
    const right = row.getBoundingClientRect().right
    return boxes.some((box) =>
      isAlone(box) && !boxes.some((other) => other.left >= box.right && other.top < box.bottom && other.bottom > box.top) &&
      box.right < right - 2
    )
  }
  return [
    ...all("dialog[open] *")
      .filter((each) => each.scrollWidth > each.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(each).overflowX))
      .map((each) => "scrolls sideways: " + each.className),
    ...all("input[placeholder]").filter((each) => each.value === "" && isHintCut(each)).map((each) => "cut hint: " + each.placeholder),
    ...all(".copied > button").filter(isBelow).map((each) => "alone on its line: " + each.ariaLabel),
    ...innerWidth < 700 ? all(".row").filter(endsEarly).map((each) => "ends early: " + each.textContent.slice(0, 60)) : []
  ]
})()`

/** How many cells of a table have a text that is cut, and how many there are. */
const cutCells = `(() => {
  const cells = [...document.querySelectorAll("main tbody :is(th, td)")]
  const isCut = (each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX === "hidden"
  return [cells.filter((cell) => [...cell.querySelectorAll("*:not(.sr-only)")].some(isCut)).length, cells.length]
})()`

/** What is cut, each with what is wrong about it. */
const cutTexts = async (): Promise<Array<string>> => {
  // Controls that get the focus after a key show it.
  await page.keyboard.press("Shift")
  return [...await page.evaluate<Array<string>>(cutNumbers), ...await page.evaluate<Array<string>>(unsaidTexts)]
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
    "%s draws every character in the typefaces of the pictures, has nothing that axe finds, and at three widths cuts no number and has room to press",
    async (_, route) => {
      await page.setViewportSize({ width: 1440, height: 900 })
      await goTo(route)
      assert.deepStrictEqual(await foreignText(), [])
      assert.deepStrictEqual(await missingGlyphs(), [])
      assert.deepStrictEqual(await findingsOfThemes(page), [])
      // The same page at each width: it is not wider than the window, and no number and no filled field is cut.
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        await fits(`at ${width}`)
        assert.deepStrictEqual(await cutTexts(), [], `at ${width}`)
        assert.deepStrictEqual(await page.evaluate(outOfTables), [], `at ${width}`)
        assert.deepStrictEqual(await page.evaluate(badlyPlaced), [], `at ${width}`)
        assert.deepStrictEqual(await smallTargets(page), [], `at ${width}`)
      }
      assert.deepStrictEqual(await lowControls(page), [])
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
        wrong.push(...await compare(page, `${name}-${theme}-${width}`))
      }
      assert.deepStrictEqual(wrong, [])
    })
  })

  it("long names and numbers of eight digits are whole, or have their whole text, at three widths", async () => {
    await page.emulateMedia({ colorScheme: "light" })
    for (const route of ["requests", "keys", "accounts", "overview"]) {
      await page.setViewportSize({ width: 1440, height: 900 })
      await show({ name: "long", route, replies: longReplies })
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        await fits(`${route} at ${width}`)
        assert.deepStrictEqual(await cutTexts(), [], `${route} at ${width}`)
        if (route !== "requests" || width !== 1440) continue
        const [cut, cells] = await page.evaluate<readonly [number, number]>(cutCells)
        assert.isAtMost(cut / cells, 0.05, `${cut} of ${cells} cells are cut`)
      }
    }
    await show({ name: "long", route: "keys", replies: longReplies, open: editLongKey })
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 })
      assert.deepStrictEqual(await page.evaluate(cutNumbers), [], `at ${width}`)
    }
  })

  describe.each(states)("$name", (state) => {
    it("has nothing that axe finds in light and dark, cuts no number, has room to press, and looks as committed", async () => {
      const { name, narrow = false, pale = false, part } = state
      const isWide = narrow !== "alone"
      await page.setViewportSize({ width: isWide ? 1440 : 390, height: 900 })
      await page.emulateMedia({ colorScheme: "light" })
      await show(state)
      const wrong: Array<string> = []
      const look = async (width: number, theme: string) => {
        if (pinned !== undefined) {
          const shown = width < 1440 || part === undefined ? undefined : page.locator(part)
          wrong.push(...await compare(page, `${name}-${theme}-${width}`, shown))
        }
        wrong.push(
          ...await page.evaluate<Array<string>>(cutNumbers),
          ...await page.evaluate<Array<string>>(tooWide),
          ...await page.evaluate<Array<string>>(badlyPlaced),
          ...await smallTargets(page)
        )
      }
      if (isWide) await look(1440, "light")
      const found = await findingsOfThemes(page, part)
      wrong.push(...found.filter((finding) => !(pale && finding.startsWith("color-contrast"))))
      if (narrow !== false) {
        await page.setViewportSize({ width: 390, height: 900 })
        await look(390, "dark")
        wrong.push(...await lowControls(page))
      }
      assert.deepStrictEqual(wrong, [])
    })
  })
})
