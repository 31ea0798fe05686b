/**
 * In place of the page of something that does not exist.
 */
import { useTexts } from "../../state/preferences.ts"
import { linkTo, type Page } from "../../state/route.ts"

export const Gone = ({ page }: { readonly page: Page }) => {
  const { common, nouns } = useTexts()
  return (
    <p class="notice">
      {nouns.gone} <a href={linkTo(page)}>{common.pages[page]}</a>
    </p>
  )
}
