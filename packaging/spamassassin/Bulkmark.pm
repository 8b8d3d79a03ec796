# SPDX-License-Identifier: GPL-3.0-or-later
# Asks a bulkmark milter on this or another machine about each message, by its HTTP interface. docs/interfaces.md explains the setup.

package Mail::SpamAssassin::Plugin::Bulkmark;

use strict;
use warnings;

use Errno qw(EINTR);
use IO::Socket::IP;
use IO::Socket::UNIX;
use JSON::PP ();
use Mail::SpamAssassin::Logger qw(dbg info);
use Mail::SpamAssassin::Plugin;
use Mail::SpamAssassin::Timeout;
use Mail::SpamAssassin::Util qw(untaint_var);

our @ISA = qw(Mail::SpamAssassin::Plugin);

# An answer is much shorter.
use constant LONGEST_ANSWER => 1024 * 1024;

sub new {
    my ($class, $main) = @_;
    my $self = $class->SUPER::new($main);
    bless $self, ref($class) || $class;
    my $conf = $main->{conf};
    $conf->{parser}->register_commands([
        { setting => 'use_bulkmark', default => 1, type => $Mail::SpamAssassin::Conf::CONF_TYPE_BOOL },
        {
            setting => 'bulkmark_server', is_admin => 1, default => '/run/bulkmark/http.sock',
            type => $Mail::SpamAssassin::Conf::CONF_TYPE_STRING,
        },
        { setting => 'bulkmark_token_file', is_admin => 1, type => $Mail::SpamAssassin::Conf::CONF_TYPE_STRING },
        {
            setting => 'bulkmark_timeout', is_admin => 1, default => 5,
            type => $Mail::SpamAssassin::Conf::CONF_TYPE_DURATION,
        },
        { setting => 'bulkmark_count', is_admin => 1, default => 1, type => $Mail::SpamAssassin::Conf::CONF_TYPE_BOOL },
    ]);
    my $rules = $Mail::SpamAssassin::Conf::TYPE_FULL_EVALS;
    $self->register_eval_rule("check_bulkmark_$_", $rules) for qw(body near times spam whitelist);
    return $self;
}

sub check_bulkmark_body { my ($self, $pms) = @_; return $self->_is_bulk($pms, 'body') }

sub check_bulkmark_near { my ($self, $pms) = @_; return $self->_is_bulk($pms, 'near') }

# Whether either count is so many times its threshold. False if bulkmark would only mark the message.
sub check_bulkmark_times {
    my ($self, $pms, undef, $times) = @_;
    my $answer = $self->_answer($pms);
    return 0 if $answer->{held} || !_is_too_much($answer);
    return (grep { _reaches($answer->{$_}, $times) } qw(body near)) ? 1 : 0;
}

# False if bulkmark would only mark the message: a recipient has written to its sender, and the score is meant for refusing.
sub check_bulkmark_spam {
    my ($self, $pms) = @_;
    my $answer = $self->_answer($pms);
    return $answer->{verdict} eq 'spam' && !$answer->{held} ? 1 : 0;
}

sub check_bulkmark_whitelist {
    my ($self, $pms) = @_;
    return $self->_answer($pms)->{verdict} eq 'whitelisted' ? 1 : 0;
}

sub _is_too_much { my ($answer) = @_; return $answer->{verdict} eq 'bulk' || $answer->{verdict} eq 'spam' }

sub _reaches {
    my ($count, $times) = @_;
    return defined $count && $count->{count} >= $times * $count->{threshold};
}

sub _is_bulk {
    my ($self, $pms, $kind) = @_;
    my $answer = $self->_answer($pms);
    return 0 unless _is_too_much($answer);
    # A canary has no counts.
    return 1 if $kind eq 'body' && $answer->{verdict} eq 'bulk' && !$answer->{body} && !$answer->{near};
    return _reaches($answer->{$kind}, 1) ? 1 : 0;
}

# bulkmark's answer about a message. It is asked once; an empty verdict means that bulkmark did not answer.
sub _answer {
    my ($self, $pms) = @_;
    return $pms->{bulkmark} if $pms->{bulkmark};
    $pms->{bulkmark} = { verdict => '' };
    # "spamassassin --lint" counts nothing.
    return $pms->{bulkmark} if !$pms->{conf}->{use_bulkmark} || $self->{main}->{lint_rules};
    my $answer;
    my $timer = Mail::SpamAssassin::Timeout->new({
        secs => $pms->{conf}->{bulkmark_timeout}, deadline => $pms->{master_deadline},
    });
    my $why = $timer->run_and_catch(sub { $answer = _ask($pms) });
    my $server = $pms->{conf}->{bulkmark_server};
    if ($timer->timed_out()) {
        info("bulkmark: no answer of $server within $pms->{conf}->{bulkmark_timeout} s");
    } elsif ($why) {
        chomp $why;
        info("bulkmark: no answer of $server: $why");
    } else {
        $pms->{bulkmark} = $answer;
        _tell($pms, $answer);
    }
    return $pms->{bulkmark};
}

# Template tags, and a line in the log.
sub _tell {
    my ($pms, $answer) = @_;
    my %tags = (VERDICT => $answer->{verdict}, BECAUSE => $answer->{because}, ACTION => $answer->{action});
    $tags{COUNT} = $answer->{body}->{count} if $answer->{body};
    $tags{NEAR}  = $answer->{near}->{count} if $answer->{near};
    $tags{HEADER} = $answer->{header}->{value} if $answer->{header};
    $pms->set_tag("BULKMARK$_", $tags{$_}) for grep { defined $tags{$_} } keys %tags;
    my $line = "bulkmark: $answer->{verdict}, since " . ($answer->{because} // 'it did not say why');
    _is_too_much($answer) ? info($line) : dbg($line);
}

# Asks, and dies with the error.
sub _ask {
    my ($pms) = @_;
    my $conf = $pms->{conf};
    my $message = $pms->{msg}->get_pristine();
    utf8::encode($message) if utf8::is_utf8($message);
    my @fields = (
        'POST /v1/judge?' . _query($pms) . ' HTTP/1.1',
        'Host: localhost', 'Connection: close', 'Content-Type: message/rfc822', 'Content-Length: ' . length $message,
    );
    push @fields, 'Authorization: Bearer ' . _token($conf->{bulkmark_token_file}) if $conf->{bulkmark_token_file};
    my $socket = _connect($conf->{bulkmark_server});
    # A server that refuses a message does not read all of it, and sends the reason.
    local $SIG{PIPE} = 'IGNORE';
    _write($socket, join("\r\n", @fields) . "\r\n\r\n" . $message);
    my $text = _read($socket);
    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    my ($status) = ($head // '') =~ m{^HTTP/1\.\d (\d{3})};
    die "the answer is not HTTP\n" unless defined $status && defined $body;
    my $answer = eval { JSON::PP->new->utf8->decode($body) };
    die "the answer, with status $status, is not JSON\n" unless ref $answer eq 'HASH';
    die "$status: " . ($answer->{error} // 'no reason') . "\n" unless $status == 200;
    die "the answer has no verdict\n" unless defined $answer->{verdict};
    return $answer;
}

sub _connect {
    my ($server) = @_;
    my $socket;
    if ($server =~ m{^/}) {
        $socket = IO::Socket::UNIX->new(Peer => untaint_var($server));
    } else {
        my ($host, $port) = $server =~ /^\[?(.*?)\]?:(\d+)$/ or die "expected a path, or host and port\n";
        $socket = IO::Socket::IP->new(PeerHost => untaint_var($host), PeerPort => untaint_var($port));
    }
    return $socket || die 'cannot connect: ' . ($! || $@) . "\n";
}

sub _write {
    my ($socket, $text) = @_;
    my $at = 0;
    while ($at < length $text) {
        my $written = syswrite $socket, $text, length($text) - $at, $at;
        if (defined $written) { $at += $written }
        else { last unless $! == EINTR }
    }
}

sub _read {
    my ($socket) = @_;
    my $text = '';
    while (length $text <= LONGEST_ANSWER) {
        my $read = sysread $socket, $text, 65536, length $text;
        next if !defined $read && $! == EINTR;
        last unless $read;
    }
    return $text;
}

sub _token {
    my ($path) = @_;
    open my $file, '<', untaint_var($path) or die "cannot read $path: $!\n";
    my $line = <$file> // '';
    my ($token) = $line =~ /^\s*([\x21-\x7e]+)\s*$/ or die "$path: expected one line with a token\n";
    return $token;
}

# The envelope, as far as SpamAssassin knows it: it does not know recipients.
sub _query {
    my ($pms) = @_;
    my @parts = $pms->{conf}->{bulkmark_count} ? () : ('count=no');
    my $add = sub {
        my ($name, $value) = @_;
        return unless defined $value && $value ne '';
        utf8::encode($value) if utf8::is_utf8($value);
        $value =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ge;
        push @parts, "$name=$value";
    };
    my $relays = $pms->{relays_external};
    if (my $client = $relays && $relays->[0]) {
        $add->('ip', $client->{ip});
        $add->('hostname', $client->{rdns});
        $add->('helo', $client->{helo});
        $add->('queue-id', $client->{id});
    }
    my $sender = $pms->get('EnvelopeFrom:addr', undef);
    $add->('from', $sender eq '' ? '<>' : $sender) if defined $sender;
    return join '&', @parts;
}

1;
