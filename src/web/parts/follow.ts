/**
 * Pop-ups that stay at their buttons.
 */

/** Where a button and its pop-up are, how large they are, and the window they are in. */
const placesOf = (popup: HTMLElement, button: HTMLElement): string => {
  const { left, top, width, height } = button.getBoundingClientRect()
  return [left, top, width, height, popup.offsetWidth, popup.offsetHeight, innerWidth, innerHeight].join(" ")
}

/**
 * Places a pop-up at its button, and again in each frame in which something has moved: the page scrolls, the window is resized, or
 * something is put in above. Returns a function that ends this.
 */
export const follow = (
  popup: HTMLElement,
  button: HTMLElement,
  place: (popup: HTMLElement, button: HTMLElement) => void
): () => void => {
  let placed = ""
  let frame = 0
  const look = () => {
    if (placesOf(popup, button) !== placed) place(popup, button)
    placed = placesOf(popup, button)
    frame = requestAnimationFrame(look)
  }
  look()
  return () => cancelAnimationFrame(frame)
}
