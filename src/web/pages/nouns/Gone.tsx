/**
 * In place of the page of something that does not exist, or that was deleted while its page is open.
 */
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"
import { GoneContext } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { linkTo, type Page } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"

/** Says that something does not exist, and leads to the list of its kind. */
export const Gone = ({ page }: { readonly page: Page }) => {
  const { common, nouns } = useTexts()
  return (
    <>
      <Heading name={common.pages[page]} />
      <p class="notice">
        {nouns.gone} <a href={linkTo(page)}>{common.pages[page]}</a>
      </p>
    </>
  )
}

/**
 * What is shown of an item. One that is gone is shown as it was last, and told so: its page says that it is gone, and its dialogs stay,
 * with what was typed.
 */
export const Last = <Item extends object>({ children, item, page }: {
  /** `undefined` when it does not exist, or no longer. */
  readonly item: Item | undefined
  readonly page: Page
  readonly children: (item: Item, isGone: boolean) => ComponentChildren
}) => {
  const last = useRef(item)
  last.current = item ?? last.current
  if (last.current === undefined) return <Gone page={page} />
  return (
    <GoneContext.Provider value={item === undefined}>{children(last.current, item === undefined)}</GoneContext.Provider>
  )
}
