//! The runner that drives external harnesses, such as Codex or Claude Code, over the Agent Client Protocol.
//!
//! Invariant: it uses the public SDK only. What a harness may do is decided by the host; what it can do is limited by
//! the sandbox of this process.

mod config;
mod gateway;
mod git;
mod permission;
mod process;
pub mod profile;
mod projection;
mod prompt;
mod session;
mod sessions;
mod settings;
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
    ArtifactPermission, HarnessPermissionKind, HistoryPermission, Manifest, ModelPermission,
    Plugin, RunCtx, RunFailure, RunResult, Runner, StateScope, StorageArea, ToolPermission, en_zh,
};
use profile::Profile;
use session::{Origin, Session, Start};
use sessions::{Held, Sessions, Slot};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use texts::Texts;
use turn::Driver;
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
        let place = Place::prepare(&self.own, &owner, &config).await;
        let mut place = place.map_err(|why| RunFailure::new("harness.workspace", why))?;
        place.is_apart = self.settings.wall.is_some();
        place
            .within(|| projection::write(&ctx, &place))
            .flatten()
            .map_err(|error| RunFailure::new("harness.workspace", error.to_string()))?;
        let (held, session, origin) = self.session(&ctx, &config, held, &place, texts).await?;
        self.use_session(&ctx, &slot, (held, session), (origin, texts)).await?;
        match config.workspace {
            Workspace::Git => report_changes(&ctx, self.settings.wall.as_ref(), &place).await,
            Workspace::Conversation | Workspace::Folder => Ok(()),
        }
    }
}

impl AcpAgent {
    /// The session of the conversation: the open one, or one that is started now.
    async fn session(
        &self,
        ctx: &RunCtx,
        config: &Config,
        mut held: Held,
        place: &Place,
        texts: Texts,
    ) -> Result<(Held, Session, Option<Origin>), RunFailure> {
        let model = session::chosen_model(ctx, config);
        if let Some(mut session) = held.take() {
            if session.fits(config, model.as_deref()) {
                return Ok((held, session, None));
            }
            session.stop().await;
        }
        let gateway = self.gateway(ctx, config, texts).await?;
        let room = ctx.unless_cancelled(self.sessions.room()).await?;
        let start = Start {
            ctx,
            profile: &self.profile,
            command: &self.command,
            config,
            place: place.clone(),
            wall: self.settings.wall.as_ref(),
            gateway,
            texts,
            room,
            tasks: &self.sessions.tasks,
        };
        let (session, origin) = Session::open(start).await?;
        Ok((held, session, Some(origin)))
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
    ) -> Result<(), RunFailure> {
        if let (Some(gateway), Some(token)) = (&session.gateway, run_token(ctx)) {
            gateway.begin_run(&ctx.run_id, token);
        }
        let mut before = Vec::new();
        if origin.is_some() {
            remember(ctx, &session).await?;
        }
        if origin == Some(Origin::Replaced) {
            ctx.message(texts.new_session(&self.profile.title)).await?;
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
        };
        driver.drive(held, session, prompt).await
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

/// The changes of a `git` workspace, as a file beside it and as an artifact.
async fn report_changes(
    ctx: &RunCtx,
    wall: Option<&Wall>,
    place: &Place,
) -> Result<(), RunFailure> {
    let base = place.record.base.as_deref().unwrap_or("HEAD");
    let diff = match git::diff(wall, place, base).await {
        Ok(diff) => diff,
        Err(why) => {
            eprintln!("cannot compare the workspace with its base: {why}");
            return Ok(());
        }
    };
    if let Err(error) = workspace::write_atomically(&place.root.join(workspace::CHANGES), &diff) {
        eprintln!("cannot write `{}`: {error}", workspace::CHANGES);
    }
    match diff.is_empty() {
        true => Ok(()),
        false => ctx.emit(RunResult::artifact("changes.diff", "text/x-diff", &diff)).await,
    }
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
