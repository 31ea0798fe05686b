/** The sizes of what can be pressed in a page. */
import type { Page } from "playwright-core"
import { untilValue } from "../support/until.ts"

/** The least width and height of what can be pressed, and the least height of a control under a coarse pointer, in pixels. */
const [least, leastCoarse] = [24, 40]

/**
 * The boxes of what can be pressed, as far as they are not cut off: of a field within a label that of the label. Left out are links within
 * text, whose height is that of a line, and the bars of charts, which are as wide as their time.
 */
const boxes = `(() => {
  const kinds = "a[href], button, input, select, textarea, summary, label:has(input), [role=option], [role^=menuitem]"
  const isInText = (each) => {
    const isInline = (element) => getComputedStyle(element).display.startsWith("inline")
    if (each.tagName !== "A" || !isInline(each)) return false
    let block = each.parentElement
    while (isInline(block)) block = block.parentElement
    const textOf = (node) => node.nodeType === 3
      ? node.data
      : node.nodeType !== 1 || node.matches(kinds) || !node.checkVisibility()
      ? ""
      : [...node.childNodes].map(textOf).join("")
    return /[\\p{L}\\p{N}]/u.test(textOf(block))
  }
  const isCutBy = (element) => {
    const { display, overflowX } = getComputedStyle(element)
    return display !== "inline" && (overflowX === "hidden" || overflowX === "clip")
  }
  // What is in front of the page is cut by nothing around it.
  const isInFront = (element) => element.matches("dialog, [popover]")
  const boxOf = (each) => {
    let { bottom, left, right, top } = each.getBoundingClientRect()
    for (let around = each.parentElement; around !== null && !isInFront(around); around = around.parentElement) {
      if (!isCutBy(around)) continue
      const edge = around.getBoundingClientRect()
      left = Math.max(left, edge.left)
      right = Math.min(right, edge.right)
      top = Math.max(top, edge.top)
      bottom = Math.min(bottom, edge.bottom)
    }
    return { width: right - left, height: bottom - top }
  }
  return [...document.querySelectorAll(kinds)]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.matches(".sr-only, .skip, .minute, .bin, .track > .span"))
    .filter((each) => !(each.tagName === "INPUT" && each.closest("label") !== null) && !isInText(each))
    .map((each) => ({
      ...boxOf(each),
      name: each.tagName + "." + each.className + " " + (each.ariaLabel ?? each.textContent).slice(0, 40),
      isControl: each.matches("button, input, select, textarea, summary, label, .button") &&
        !each.matches("td *, th *, .chip, .chip *, .chips *, .bulk *, .track *, .icon-only, .pick-value")
    }))
})()`

interface Box {
  readonly name: string
  readonly width: number
  readonly height: number
  /** Outside of tables, chips, time lines and lines of text, where controls are small. */
  readonly isControl: boolean
}

const say = ({ height, name, width }: Box): string => `${name}: ${width} × ${height}`

/** What can be pressed and is too small, each with its size. */
export const smallTargets = async (page: Page): Promise<Array<string>> => {
  const found = await page.evaluate<ReadonlyArray<Box>>(boxes)
  return found.filter(({ height, width }) => Math.min(height, width) < least).map(say)
}

/** The controls that are too low for a coarse pointer, each with its size. */
export const lowControls = async (page: Page): Promise<Array<string>> => {
  const session = await page.context().newCDPSession(page)
  const setCoarse = async (enabled: boolean): Promise<void> => {
    await session.send("Emulation.setTouchEmulationEnabled", { enabled })
    const isCoarse = () => page.evaluate<boolean>(`matchMedia("(pointer: coarse)").matches`)
    await untilValue(`a coarse pointer: ${enabled}`, isCoarse, (now) => now === enabled)
  }
  await setCoarse(true)
  const found = await page.evaluate<ReadonlyArray<Box>>(boxes)
  await setCoarse(false)
  await session.detach()
  return found.filter(({ height, isControl }) => isControl && height < leastCoarse).map(say)
}
