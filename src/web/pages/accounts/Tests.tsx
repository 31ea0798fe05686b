/**
 * The progress of running tests, and the accounts that failed the last ones.
 */
import { Breaking } from "../../parts/Name.tsx"
import { registry, useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { failuresAtom, progressAtom, stopTests } from "./tests.ts"

const shownFailures = 12

const Failures = () => {
  const { accounts: t, common } = useTexts()
  const failures = useAtom(failuresAtom)
  if (failures.length === 0) return null
  return (
    <section class="notice bad failures" aria-label={t.failedTests}>
      <div class="actions between">
        <h2>{t.failedTestsOf(failures.length)}</h2>
        <button type="button" class="quiet" onClick={() => registry.set(failuresAtom, [])}>{common.close}</button>
      </div>
      <ul>
        {failures.slice(0, shownFailures).map(({ message, name }) => (
          <li key={name}>
            <a href={linkTo("accounts", name)}>
              <Breaking text={name} />
            </a>
            <span>{message}</span>
          </li>
        ))}
      </ul>
      <a href={linkTo("accounts", undefined, { state: "failed" })}>
        {failures.length > shownFailures ? t.allFailed(failures.length - shownFailures) : t.showFailed}
      </a>
    </section>
  )
}

export const Tests = () => {
  const t = useTexts().accounts
  const progress = useAtom(progressAtom)
  if (progress === undefined) return <Failures />
  const { failed, passed, total } = progress
  const done = passed + failed
  return (
    <div class="progress">
      <progress aria-label={t.tests} max={Math.max(1, total)} value={done} />
      <span>{t.testsSoFar(done, total, failed)}</span>
      <button type="button" onClick={stopTests}>{t.stopTests}</button>
    </div>
  )
}
