/**
 * Strips of links or bars, such as minutes and accounts: one stop of the Tab key, in which the arrow keys move.
 */

const arrows: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1]
}

/** The part of a strip that a key leads to; `undefined` if the key does not move. */
const nextOf = (links: ReadonlyArray<HTMLElement>, now: number, key: string): HTMLElement | undefined => {
  if (key === "Home") return links[0]
  if (key === "End") return links.at(-1)
  const [x, y] = arrows[key] ?? [0, 0]
  if (x !== 0) return links[Math.min(links.length - 1, Math.max(0, now + x))]
  const from = links[now]
  if (y === 0 || from === undefined) return undefined
  const column = links.filter((link) =>
    link.offsetLeft === from.offsetLeft && Math.sign(link.offsetTop - from.offsetTop) === y
  )
  return y > 0 ? column[0] : column.at(-1)
}

/** Moves the focus within the strip that handles the event. */
export const moveInStrip = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void => {
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("[tabindex]")]
  const next = nextOf(links, links.findIndex((link) => link === document.activeElement), event.key)
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
