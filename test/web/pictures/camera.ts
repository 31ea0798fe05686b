/**
 * Takes pictures of the console and compares them with the committed ones.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import type { Locator, Page } from "playwright-core"

const differing = path.join(import.meta.dirname, "../../../node_modules/.cache/pictures")
/** Whether the pictures are written anew. */
export const updates = process.env["UPDATE_PICTURES"] === "1"

/** The share of pixels of two pictures that differ visibly, from 0 to 1; 1 if their sizes differ. */
const difference = async (page: Page, before: Buffer, after: Buffer): Promise<number> =>
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

/** A picture is of the whole page, but for what is further down than this: in a wide window, the end of the long table of Settings. */
const tallestOf = (width: number): number => width < 700 ? 5_600 : 2_400

/** How often a picture is taken until the page has drawn everything. */
const mostPictures = 30

type Take = () => Promise<Buffer>

/** A picture that is the same twice. */
const stablePicture = async (take: Take): Promise<Buffer> => {
  let last = await take()
  for (let taken = 1; taken < mostPictures; taken++) {
    const next = await take()
    if (next.equals(last)) break
    last = next
  }
  return last
}

/** The first picture that equals `committed`, or the last of many that do not. */
const closest = async (
  page: Page,
  take: Take,
  committed: Buffer
): Promise<{ readonly picture: Buffer; readonly share: number }> => {
  let picture = await take()
  let share = await difference(page, committed, picture)
  for (let taken = 1; share > tolerated && taken < mostPictures; taken++) {
    const next = await take()
    if (next.equals(picture)) continue
    picture = next
    share = await difference(page, committed, picture)
  }
  return { picture, share }
}

/**
 * Compares the window, a part of it or the whole page with the committed picture of that name. Resolves to what is wrong, one line each.
 * With `UPDATE_PICTURES=1` writes the picture in place of comparing it.
 */
export const compare = async (page: Page, name: string, part?: Locator | "page"): Promise<Array<string>> => {
  const options = { animations: "disabled", caret: "hide" } as const
  const takePage: Take = async () => {
    const height = await page.evaluate<number>("document.documentElement.scrollHeight")
    const { width } = page.viewportSize()!
    const clip = { x: 0, y: 0, width, height: Math.min(height, tallestOf(width)) }
    return page.screenshot({ ...options, fullPage: true, clip })
  }
  const take: Take = () =>
    part === "page" ? takePage() : part === undefined ? page.screenshot(options) : part.screenshot(options)
  const file = `${name}.png`
  const committed = path.join(import.meta.dirname, file)
  if (updates || !existsSync(committed)) {
    writeFileSync(committed, await stablePicture(take))
    return updates ? [] : [`${file} was missing`]
  }
  const { picture, share } = await closest(page, take, readFileSync(committed))
  if (share <= tolerated) return []
  mkdirSync(differing, { recursive: true })
  writeFileSync(path.join(differing, file), picture)
  return [`${file}: ${(share * 100).toFixed(2)} % of the pixels differ`]
}
