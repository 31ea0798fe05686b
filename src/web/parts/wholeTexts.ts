/**
 * The whole text of what is cut or stands behind an icon: by its title under the pointer, and below its row while the keyboard has the
 * focus there.
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

/** What a control that is drawn as an icon alone says by its title. */
const iconText = (control: Element): ReadonlyArray<string> =>
  control instanceof HTMLButtonElement && control.title !== "" && control.textContent === "" ? [control.title] : []

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
    const show = ({ target }: Event) => {
      hide()
      if (!(target instanceof Element) || !target.matches(":focus-visible")) return
      const texts = [...iconText(target), ...cutTexts(rowOf(target))]
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
    const { signal } = listening
    document.addEventListener("pointerover", onPointer, { signal })
    document.addEventListener("focusin", show, { signal })
    document.addEventListener("focusout", hide, { signal })
    document.addEventListener("scroll", hide, { capture: true, signal })
    document.addEventListener("keydown", ({ key }) => key === "Escape" && hide(), { signal })
    return () => {
      listening.abort()
      box.remove()
    }
  }, [])
