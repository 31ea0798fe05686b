/**
 * Overview: whether the gateway is well.
 */
import { Heading } from "../../parts/Heading.tsx"
import { Lazy } from "../../parts/Loaded.tsx"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { sessionAtom } from "../../state/session.ts"
import { useTexts } from "../../state/texts.ts"
import { FirstRunNotice } from "./FirstRunNotice.tsx"

/** Not needed to sign in, and for any other page. */
const loadDetails = () => import("./Details.tsx").then((module) => module.Details)

export const Overview = () => {
  const { common, overview: t } = useTexts()
  const session = useAtom(sessionAtom)
  return (
    <>
      <Heading name={common.pages.overview} />
      {session.generatedKey && (
        <p class="notice warn">
          {t.generatedKey} <a href={linkTo("settings")}>{common.pages.settings}</a>
        </p>
      )}
      <FirstRunNotice />
      <Lazy load={loadDetails} of={undefined} />
    </>
  )
}
