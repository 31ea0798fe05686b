/**
 * The contrast of buttons and links in every state, light and dark, in Chromium.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, Locator, Page } from "playwright-core"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { goTo, launch, open, openPreferences, signIn, type Watched } from "./support.ts"

let browser: Browser
let gateway: RunningGateway
let watched: Watched

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([launch(), startGateway()])
  watched = await open(browser, `${gateway.url}/console/`)
})

afterAll(async () => {
  await watched.close()
  await browser.close()
  await gateway.stop()
})

/** The contrast that WCAG requires of text, and of focus indicators. */
const [readable, visible] = [4.5, 3]

/** Kinds of buttons and links: element and class. `at-end`: a button that keeps the focus and does nothing. */
const kinds = [
  ["button", ""],
  ["button", "primary"],
  ["button", "danger"],
  ["button", "quiet"],
  ["button", "quiet danger"],
  ["button", "quiet at-end"],
  ["a", "button"],
  ["a", ""]
] as const

/** The surfaces below them. Their interaction states are tested on the first two. */
const grounds = ["", "toast good", "card", "notice", "notice warn", "notice bad", "notice good"]

/** Defines `contrasts(element)` in the page: the contrast of its text with its background, and of its outline with its surroundings. */
const measuring = `
  globalThis.contrasts = (element) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
    const light = () => {
      const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => {
        const part = value / 255
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const paint = (colour) => {
      canvas.fillStyle = colour
      canvas.fillRect(0, 0, 1, 1)
      return light()
    }
    const behind = (innermost) => {
      const path = []
      for (let each = innermost; each !== null; each = each.parentElement) path.unshift(each)
      paint("white")
      return path.map((each) => paint(getComputedStyle(each).backgroundColor)).at(-1)
    }
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    const { color, outlineColor } = getComputedStyle(element)
    const own = behind(element)
    const text = ratio(own, paint(color))
    const around = behind(element.parentElement)
    return { name: element.textContent, text, outline: ratio(around, paint(outlineColor)) }
  }
`

/** Adds every kind, enabled and disabled, on every ground to the page. */
const samples = `
  const box = document.createElement("div")
  box.id = "samples"
  for (const ground of ${JSON.stringify(grounds)}) {
    const part = box.appendChild(document.createElement("p"))
    part.className = ground
    for (const [element, kind] of ${JSON.stringify(kinds)}) {
      for (const disabled of element === "button" ? [false, true] : [false]) {
        const sample = part.appendChild(document.createElement(element))
        sample.className = kind
        sample.textContent = [element, kind, disabled ? "disabled" : "", "on", ground].join(" ")
        if (element === "a") sample.href = "#/overview"
        sample.disabled = disabled
        sample.ariaDisabled = kind.endsWith("at-end") ? "true" : null
      }
    }
  }
  document.querySelector("main").prepend(box)
`

interface Contrasts {
  readonly name: string
  readonly text: number
  readonly outline: number
}

const contrasts = (elements: Locator): Promise<ReadonlyArray<Contrasts>> =>
  elements.evaluateAll((found) =>
    found.map((globalThis as unknown as { readonly contrasts: (element: unknown) => Contrasts }).contrasts)
  )

const choose = (page: Page, theme: string) => page.getByRole("combobox", { name: "Theme" }).selectOption(theme)

describe("the console's buttons and links", () => {
  it.each(["Light", "Dark"])("the sign-in button is readable under the mouse: %s", async (theme) => {
    const { page } = watched
    await page.evaluate(measuring)
    await choose(page, theme)
    const button = page.getByRole("button", { name: "Sign in" })
    await button.hover()
    for (const { text } of await contrasts(button)) assert.isAtLeast(text, readable)
  })

  it("are readable at rest, under the mouse, pressed, focused and disabled, on every ground", async () => {
    const { page } = watched
    await signIn(page, adminKey)
    await goTo(page, "About")
    await openPreferences(page)
    await page.evaluate(samples)
    const found: Array<string> = []
    const look = async (state: string, samples: Locator) => {
      for (const { name, outline, text } of await contrasts(samples)) {
        if (text < readable) found.push(`${state}: ${name} ${text}`)
        if (state.endsWith("focus") && outline < visible) found.push(`${state}: outline of ${name} ${outline}`)
      }
    }
    const all = page.locator("#samples :is(button, a)")
    assert.strictEqual(await all.count(), grounds.length * 14)
    for (const theme of ["Light", "Dark"]) {
      await choose(page, theme)
      await look(`${theme}, at rest`, all)
      for (const sample of await page.locator("#samples p:nth-child(-n + 2) :is(button, a)").all()) {
        await sample.hover({ force: true })
        await look(`${theme}, hover`, sample)
        if (await sample.isDisabled()) continue
        await page.mouse.down()
        await look(`${theme}, pressed`, sample)
        await page.mouse.move(0, 0)
        await page.mouse.up()
        // The browser shows the focus only after a key press.
        await page.keyboard.press("Shift")
        await sample.focus()
        await look(`${theme}, focus`, sample)
      }
    }
    assert.deepStrictEqual(found, [])
  })
})
