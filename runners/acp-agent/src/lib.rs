//! The runner that drives external harnesses, such as Codex or Claude Code, over the Agent Client Protocol.
//!
//! Invariant: it uses the public SDK only. What a harness may do is decided by the host; what it can do is limited by
//! the sandbox of this process.

mod beneath;
mod config;
mod gateway;
mod git;
mod made;
mod permission;
mod process;
pub mod profile;
mod projection;
mod prompt;
mod session;
mod sessions;
mod settings;
mod skills;
mod summary;
mod texts;
mod tool_calls;
mod turn;
mod updates;
mod wall;
mod wire;
pub mod workspace;

pub use config::{Folders, check_config, folders};
pub use settings::{Settings, Wall};

use config::{Config, Keys, Workspace};
use gateway::Gateway;
use greenroom_sdk::{
    ArtifactPermission, FilePermission, HarnessPermissionKind, HistoryPermission, Manifest,
    ModelPermission, Plugin, RunCtx, RunFailure, RunResult, Runner, StateScope, StorageArea,
    ToolPermission, en_zh,
};
use profile::Profile;
use projection::Projection;
use session::{Origin, Session, Start};
use sessions::{Held, Sessions, Slot};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use texts::Texts;
use turn::{Driver, Finish};
use workspace::{Owner, Place};

/// The author in the ids of these runners: `plugin:harness/NAME/default`.
pub const AUTHOR: &str = "harness";

/// Serves one harness until the host ends the connection; the settings are one JSON argument.
pub fn main(settings: &str) -> ExitCode {
    let problem = match serde_json::from_str::<Settings>(settings) {
        Ok(settings) => match AcpAgent::new(settings) {
            Ok(agent) => {
                let name = agent.settings.name.clone();
                let plugin = Plugin::new(AUTHOR, name).version(env!("CARGO_PKG_VERSION"));
                return greenroom_sdk::serve(plugin.threads(2).runner(agent));
            }
            Err(problem) => problem,
        },
        Err(error) => error.to_string(),
    };
    eprintln!("error: the settings of the runner are not valid: {problem}");
    ExitCode::from(2)
}

struct AcpAgent {
    settings: Settings,
    profile: Profile,
    command: Vec<String>,
    /// The folder of the runner, with everything that it keeps.
    own: PathBuf,
    sessions: Arc<Sessions>,
}

impl AcpAgent {
    fn new(settings: Settings) -> Result<Self, String> {
        let profile = match &settings.profile {
            Some(name) => {
                profile::find(name).ok_or_else(|| format!("there is no profile `{name}`"))?
            }
            None => Profile {
                name: settings.name.clone(),
                title: settings.name.clone(),
                skills: Some(profile::SKILLS.to_owned()),
                ..Profile::default()
            },
        };
        let command = match settings.command.is_empty() {
            true => profile.command.clone(),
            false => settings.command.clone(),
        };
        let own = std::env::current_dir().map_err(|error| error.to_string())?;
        let sessions = Arc::new(Sessions::new(&settings));
        Ok(Self { settings, profile, command, own, sessions })
    }
}

impl Runner for AcpAgent {
    fn manifest(&self) -> Manifest {
        let title = &self.profile.title;
        Manifest::new("default")
            .label(en_zh(title, title))
            .description(en_zh(
                "An external harness with its own tools and session, inside the host's sandbox",
                "在宿主沙箱中运行的外部智能体，拥有自己的工具和会话",
            ))
            .capabilities(|can| {
                can.multimodal_input = true;
                can.stateful_session = true;
            })
            .models(&[ModelPermission::Invoke, ModelPermission::Stream])
            .tools(&[ToolPermission::Detail, ToolPermission::Call])
            .history(&[HistoryPermission::Page, HistoryPermission::Search])
            .artifacts(&[
                ArtifactPermission::Metadata,
                ArtifactPermission::Read,
                ArtifactPermission::Create,
            ])
            .files(&[FilePermission::Config])
            // Any area opens state, where the pointers to the session are.
            .storage(&[StorageArea::Plugin])
            .harness(&[HarnessPermissionKind::Ask])
    }

    async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
        let texts = Texts::for_text(ctx.text());
        let config = Config::load(&ctx, texts)?;
        let owner = Owner::of(&ctx);
        let slot = self.sessions.slot(&owner);
        let held = ctx.unless_cancelled(slot.hold()).await?;
        let prepared = Place::prepare(&self.own, &owner, &config).await;
        let wrong = |why: String| RunFailure::new("harness.workspace", why);
        let (place, _lease) = prepared.map_err(wrong)?;
        let skills_folder = self.profile.skills.as_deref();
        let projection = Projection::read(&ctx, skills_folder).await;
        let (held, open) = self.reusable(&ctx, &config, held, &place, &projection).await;
        let projected = projection.write(&ctx, &place, skills_folder).await;
        let work = projected.and_then(|()| place.work_folder());
        let work = work.map_err(|error| wrong(error.to_string()))?;
        let files = match config.workspace {
            Workspace::Git => None,
            Workspace::Conversation | Workspace::Folder => made::list(&work).await,
        };
        let (session, origin) = match open {
            Some(session) => (session, None),
            None => self.open(&ctx, &config, &place, &projection, texts).await?,
        };
        let mut used = self.use_session(&ctx, &slot, (held, session), (origin, texts)).await;
        if matches!(used, Ok(Finish::NotBegun)) {
            let held = ctx.unless_cancelled(slot.hold()).await?;
            let projected = projection.write(&ctx, &place, skills_folder).await;
            projected.map_err(|error| wrong(error.to_string()))?;
            let (session, origin) = self.open(&ctx, &config, &place, &projection, texts).await?;
            used = self.use_session(&ctx, &slot, (held, session), (origin, texts)).await;
        }
        if ctx.cancellation().is_cancelled() {
            return used.map(drop);
        }
        // Also of a run that failed: the files are there.
        let reported = match config.workspace {
            Workspace::Git => self.report_changes(&ctx, &place).await,
            Workspace::Conversation | Workspace::Folder => made::report(&ctx, &work, files).await,
        };
        let finish = used?;
        reported?;
        match finish {
            Finish::Length => ctx.emit(RunResult::completed("length")).await,
            Finish::Complete | Finish::NotBegun => Ok(()),
        }
    }
}

impl AcpAgent {
    /// The open session of the conversation, if it can take this message.
    async fn reusable(
        &self,
        ctx: &RunCtx,
        config: &Config,
        mut held: Held,
        place: &Place,
        projection: &Projection,
    ) -> (Held, Option<Session>) {
        let Some(mut session) = held.take() else { return (held, None) };
        let model = session::chosen_model(ctx, config);
        let is_same =
            session.place.identity == place.identity && session.skills == projection.skills.hash();
        if is_same && session.fits(config, model.as_deref()) {
            return (held, Some(session));
        }
        session.stop().await;
        (held, None)
    }

    /// A session that is started now.
    async fn open(
        &self,
        ctx: &RunCtx,
        config: &Config,
        place: &Place,
        projection: &Projection,
        texts: Texts,
    ) -> Result<(Session, Option<Origin>), RunFailure> {
        let gateway = self.gateway(ctx, config, texts).await?;
        let room = ctx.unless_cancelled(self.sessions.room()).await?;
        let start = Start {
            ctx,
            profile: &self.profile,
            command: &self.command,
            config,
            place: place.clone(),
            wall: self.settings.wall.as_ref(),
            skills: projection.skills.hash(),
            gateway,
            texts,
            room,
            tasks: &self.sessions.tasks,
        };
        let (session, origin) = Session::open(start).await?;
        Ok((session, Some(origin)))
    }

    /// The way to the host's tools and models, where the host offers it to this run.
    async fn gateway(
        &self,
        ctx: &RunCtx,
        config: &Config,
        texts: Texts,
    ) -> Result<Option<Gateway>, RunFailure> {
        let token = run_token(ctx);
        let host = self.settings.host.filter(|_| token.is_some());
        let gateway = match host {
            None => None,
            Some(host) => {
                let provider = self.profile.provider.map(profile::Provider::as_str);
                let secret = secret().map_err(RunFailure::error)?;
                let opened = Gateway::open(host, provider, secret, &self.sessions.tasks).await;
                let cannot = |error: std::io::Error| {
                    RunFailure::error(format!("cannot listen on loopback: {error}"))
                };
                let gateway = opened.map_err(cannot)?;
                // A harness may use it while its session is loaded.
                gateway.begin_run(&ctx.run_id, token.unwrap_or_default());
                Some(gateway)
            }
        };
        let has_model = gateway.is_some() && session::chosen_model(ctx, config).is_some();
        match config.keys {
            Keys::Gateway if !has_model && self.profile.provider.is_some() => {
                Err(RunFailure::new("harness.no_model", texts.no_gateway()))
            }
            Keys::Gateway | Keys::Own => Ok(gateway),
        }
    }

    async fn use_session(
        &self,
        ctx: &RunCtx,
        slot: &Arc<Slot>,
        (held, session): (Held, Session),
        (origin, texts): (Option<Origin>, Texts),
    ) -> Result<Finish, RunFailure> {
        if let (Some(gateway), Some(token)) = (&session.gateway, run_token(ctx)) {
            gateway.begin_run(&ctx.run_id, token);
        }
        let mut before = Vec::new();
        if origin.is_some() {
            remember(ctx, &session).await?;
        }
        if origin == Some(Origin::Replaced) {
            let title = &self.profile.title;
            let text = match session.place.is_new {
                true => texts.new_workspace(title),
                false => texts.new_session(title),
            };
            ctx.message(text).await?;
            before.extend(summary::of(ctx).await);
        }
        let prompt = prompt::blocks(ctx, &session.place, session.takes, before).await?;
        let driver = Driver {
            ctx,
            sessions: &self.sessions,
            slot,
            title: &self.profile.title,
            texts,
            memory_mb_max: self.settings.session_memory_mb,
            is_reused: origin.is_none(),
        };
        driver.drive(held, session, prompt).await
    }

    /// The changes of a `git` workspace, as a file beside it and as an artifact.
    async fn report_changes(&self, ctx: &RunCtx, place: &Place) -> Result<(), RunFailure> {
        let diff = match git::diff(&self.own, &place.root, &place.record).await {
            Ok(diff) => diff,
            Err(why) => {
                eprintln!("cannot compare the workspace with its base: {why}");
                return Ok(());
            }
        };
        let changes = workspace::CHANGES;
        if let Err(error) = workspace::write_atomically(&place.root.join(changes), &diff) {
            eprintln!("cannot write `{changes}`: {error}");
        }
        match diff.is_empty() {
            true => Ok(()),
            false => made::emit(ctx, changes, Some("text/x-diff"), &diff).await,
        }
    }
}

/// Stores at the host where the session can be found again.
async fn remember(ctx: &RunCtx, session: &Session) -> Result<(), RunFailure> {
    if !ctx.context.available_apis.state || ctx.conversation.is_none() {
        return Ok(());
    }
    let work = session.place.work.to_string_lossy().into_owned();
    let pointers =
        [(projection::SESSION_ID, session.id.clone()), (projection::WORKING_DIRECTORY, work)];
    for (key, value) in pointers {
        ctx.emit(RunResult::state(StateScope::Conversation, key, value)).await?;
    }
    Ok(())
}

fn run_token(ctx: &RunCtx) -> Option<&str> {
    ctx.runtime.metadata.get("run_token")?.as_str()
}

/// A secret for the harness's way to the host.
fn secret() -> Result<String, String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(format!("grs_{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
