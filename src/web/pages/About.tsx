/**
 * About: versions, and where the API's documents are.
 */
import * as Exit from "effect/Exit"
import { useEffect, useState } from "preact/hooks"
import { Heading } from "../parts/Heading.tsx"
import { Loading } from "../parts/Loaded.tsx"
import { call, tell } from "../state/actions.ts"
import type { Reply } from "../state/client.ts"
import { at } from "../state/client.ts"
import { causeText } from "../state/failure.ts"
import { useTexts } from "../state/preferences.ts"

type Version = Reply<"admin-version", "version">

export const About = () => {
  const texts = useTexts()
  const t = texts.about
  const [version, setVersion] = useState<Version>()
  const [busy, setBusy] = useState(false)
  const load = async (asked: boolean) => {
    setBusy(true)
    const exit = await call((client) => client["admin-version"].version())
    setBusy(false)
    if (Exit.isFailure(exit)) return tell(causeText(exit.cause), true)
    setVersion(exit.value)
    if (!asked) return undefined
    if (exit.value.check_error !== undefined) return tell(t.checkFailed(exit.value.check_error), true)
    return tell(exit.value.has_update ? t.update(exit.value.latest_version ?? "") : t.upToDate)
  }
  useEffect(() => void load(false), [])
  return (
    <>
      <Heading name={texts.common.pages.about} />
      <div class="card" role="group" aria-label={t.version}>
        <h2>{t.version}</h2>
        {version === undefined ? <Loading /> : (
          <dl class="facts">
            <dt>{t.running}</dt>
            <dd>{version.current_version}</dd>
            <dt>{t.latest}</dt>
            <dd>{version.latest_version ?? t.unknown}</dd>
            {version.has_update && version.release_url !== null
              ? (
                <>
                  <dt>{t.release}</dt>
                  <dd class="text">
                    <a href={version.release_url} rel="noreferrer">{version.release_url}</a>
                  </dd>
                </>
              )
              : null}
          </dl>
        )}
        <div class="actions">
          <button type="button" disabled={busy} onClick={() => void load(true)}>{t.check}</button>
        </div>
      </div>
      <div class="card">
        <h2>{t.documents}</h2>
        <p>{t.documentsHint}</p>
        <ul class="links">
          <li>
            <a href={at("/docs")}>{t.docs}</a>
          </li>
          <li>
            <a href={at("/openapi.json")}>{t.openapi}</a>
          </li>
        </ul>
      </div>
    </>
  )
}
