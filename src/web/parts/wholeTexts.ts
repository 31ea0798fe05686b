/**
 * The whole text of what is cut, stands behind an icon or is said by a title: by that title under the pointer, below its row while the
 * keyboard has the focus there, and below what a finger touches.
 */
import { useEffect } from "preact/hooks"

/** What is cut where dots show it. */
const isCut = (element: Element): boolean =>
  element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).textOverflow === "ellipsis"

/** The text of an element; of a name that is cut in its middle, both parts. */
const textOf = (element: Element): string => (element.closest(".middle") ?? element).textContent.trim()

/** What a focused control belongs to. */
const rowOf = (control: Element): Element => control.closest("tr, li, .lane") ?? control

const cutTexts = (row: Element): ReadonlyArray<string> => [
  ...new Set([row, ...row.querySelectorAll("*")].filter(isCut).map(textOf))
]

/** What the titles of a control, of what it stands in and of what stands in it say beside its words. */
const titlesOf = (control: Element): ReadonlyArray<string> => [
  ...new Set(
    [control.closest("[title]") ?? control, ...control.querySelectorAll("[title]")]
      .flatMap((each) =>
        each instanceof HTMLElement && each.title !== "" && each.title !== each.textContent ? [each.title] : []
      )
  )
]

/** What is pressed does something else than to say its title. */
const pressed = "a, button, input, select, textarea, summary, label"

/** A text under the pointer gets a title, unless what it stands in has one with it. */
const onPointer = ({ target }: Event): void => {
  if (!(target instanceof HTMLElement) || !isCut(target)) return
  const text = textOf(target)
  if (target.closest<HTMLElement>("[title]")?.title.includes(text) !== true) target.title = text
}

/** Shows whole texts until the page is left. */
export const useWholeTexts = (): void =>
  useEffect(() => {
    const listening = new AbortController()
    const box = document.body.appendChild(document.createElement("div"))
    box.className = "whole"
    box.popover = "manual"
    // Screen readers read what is cut as a whole.
    box.ariaHidden = "true"
    const hide = () => box.hidePopover()
    const show = (target: Element, texts: ReadonlyArray<string>) => {
      if (texts.length === 0) return
      box.textContent = texts.join("\n")
      try {
        box.showPopover()
      } catch {
        // A pop-up that opens or closes moves the focus before it is done, and none can be shown meanwhile.
        return
      }
      const { bottom, left, top } = target.getBoundingClientRect()
      const { height, width } = box.getBoundingClientRect()
      box.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`
      box.style.top = `${bottom + height + 8 > innerHeight ? top - height - 8 : bottom + 8}px`
    }
    let [isByKeys, isByTouch] = [false, false]
    const onFocus = ({ target }: Event) => {
      hide()
      if (!isByKeys || !(target instanceof Element) || !target.matches(":focus-visible")) return
      const texts = [...new Set([...titlesOf(target), ...cutTexts(rowOf(target))])]
      // One pop-up cannot be shown while another one is being shown, which moves the focus into it.
      if (target.closest("[popover]") === null) show(target, texts)
      else queueMicrotask(() => show(target, texts))
    }
    // The click of a touch comes after the focus has left what had it.
    const onClick = ({ target }: Event) => {
      hide()
      if (!isByTouch || !(target instanceof Element) || target.closest(pressed) !== null) return
      const titled = target.closest<HTMLElement>("[title]")
      show(target, titled === null ? isCut(target) ? [textOf(target)] : [] : [titled.title])
    }
    const { signal } = listening
    document.addEventListener("pointerover", onPointer, { signal })
    document.addEventListener("focusin", onFocus, { signal })
    document.addEventListener("click", onClick, { signal })
    document.addEventListener("focusout", hide, { signal })
    document.addEventListener("scroll", hide, { capture: true, signal })
    const onKey = ({ key }: KeyboardEvent) => {
      isByKeys = true
      if (key === "Escape") hide()
    }
    document.addEventListener("keydown", onKey, { capture: true, signal })
    const onPress = ({ pointerType }: PointerEvent) => {
      isByKeys = false
      isByTouch = pointerType === "touch"
    }
    document.addEventListener("pointerdown", onPress, { capture: true, signal })
    return () => {
      listening.abort()
      box.remove()
    }
  }, [])
