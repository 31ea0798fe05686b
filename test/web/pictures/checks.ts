/**
 * What is wrong with a page as it is drawn: texts in typefaces of the machine, characters without a glyph, what is cut, too wide or badly
 * placed. Each check gives a line for each fault.
 */
import type { Page } from "playwright-core"
import { untilValue } from "../../support/until.ts"
import { typefaces } from "./server.ts"

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
export const foreignText = async (page: Page): Promise<Array<string>> => {
  const session = await page.context().newCDPSession(page)
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
export const missingGlyphs = (page: Page): Promise<Array<string>> =>
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
export const tooWide = `(({ clientWidth, scrollWidth }) => scrollWidth <= clientWidth ? [] :
  [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > clientWidth + 0.5)
    .map((each) => each.className + ": " + each.textContent.slice(0, 40)).slice(0, 20))(document.documentElement)`

/** The page is not wider than the window. A chart follows a width in the next frames. */
export const fits = (page: Page, where: string) =>
  untilValue(`nothing is too wide ${where}`, () => page.evaluate<Array<string>>(tooWide), (wide) => wide.length === 0)

/** The numbers and the filled fields that show less than they hold. */
export const cutNumbers = `(() => {
  const isCut = (each) => {
    if (each.tagName !== "SELECT") return each.scrollWidth > each.clientWidth + 1
    // One with dots says that there is more.
    if (getComputedStyle(each).textOverflow === "ellipsis") return false
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
export const outOfTables = `(() => {
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
    const isList = box.matches(".cards") || (innerWidth < 700 && box.ariaLabel === heading)
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
 * What does not use its room: a dialog's part that scrolls sideways, a menu with dots behind it, a hint of a field that is cut, a button to copy that stands below what
 * it copies, and in a narrow window fields that end before the fields above them.
 */
export const badlyPlaced = `(() => {
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
    ...all("td.tools")
      .filter((each) => each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== "visible")
      .map((each) => "dots behind: " + each.querySelector("button")?.ariaLabel),
    ...all("input[placeholder]").filter((each) => each.value === "" && isHintCut(each)).map((each) => "cut hint: " + each.placeholder),
    ...all(".copied > button").filter(isBelow).map((each) => "alone on its line: " + each.ariaLabel),
    ...innerWidth < 700 ? all(".row").filter(endsEarly).map((each) => "ends early: " + each.textContent.slice(0, 60)) : []
  ]
})()`

/** The cards of a list that have more than three lines, and one more where a long name breaks. Those of routes, changes and samples are as long as their texts. */
export const tallCards = `[...document.querySelectorAll("main .table-box.cards tbody tr")]
  .filter((each) => !/^(Routes|Changes|Samples)$/.test(document.querySelector("h1").textContent))
  .filter((each) => each.offsetHeight > 100)
  .map((each) => each.closest(".table-box").ariaLabel + ", " + each.offsetHeight + " px: " + each.textContent.slice(0, 60))`

/** How many cells of a table have a text that is cut, and how many there are. */
export const cutCells = `(() => {
  const cells = [...document.querySelectorAll("main tbody :is(th, td)")]
  const isCut = (each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX === "hidden"
  return [cells.filter((cell) => [...cell.querySelectorAll("*:not(.sr-only)")].some(isCut)).length, cells.length]
})()`

/** What is cut, each with what is wrong about it. */
export const cutTexts = async (page: Page): Promise<Array<string>> => {
  // Controls that get the focus after a key show it.
  await page.keyboard.press("Shift")
  return [...await page.evaluate<Array<string>>(cutNumbers), ...await page.evaluate<Array<string>>(unsaidTexts)]
}
